package tinkerwire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// putFloats writes numbers as float32.
func putFloats(list []float32) []byte {
	b := make([]byte, 4*len(list))
	for i, x := range list {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

// putLongs writes numbers as int64.
func putLongs(list []int64) []byte {
	b := make([]byte, 8*len(list))
	for i, x := range list {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(x))
	}
	return b
}

// putInts writes numbers as int32.
func putInts(list []int32) []byte {
	b := make([]byte, 4*len(list))
	for i, x := range list {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return b
}

// split checks that an array consists of whole elements and returns their number.
func split(b []byte, size int) (int, error) {
	if len(b)%size != 0 {
		return 0, fmt.Errorf("an array has %d bytes, no multiple of %d", len(b), size)
	}
	return len(b) / size, nil
}

// floats reads float32.
func floats(b []byte) ([]float32, error) {
	n, err := split(b, 4)
	if err != nil {
		return nil, err
	}
	list := make([]float32, n)
	for i := range list {
		list[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return list, nil
}

// longs reads int64.
func longs(b []byte) ([]int64, error) {
	n, err := split(b, 8)
	if err != nil {
		return nil, err
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return list, nil
}

// ints reads int32.
func ints(b []byte) ([]int32, error) {
	n, err := split(b, 4)
	if err != nil {
		return nil, err
	}
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return list, nil
}
