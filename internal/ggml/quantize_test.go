package ggml_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
)

// quantized are the types of blocks that Quantize makes.
var quantized = []ggml.Type{ggml.Q4_0, ggml.Q5_0, ggml.Q5_1, ggml.Q8_0, ggml.Q4_K, ggml.Q5_K, ggml.Q6_K}

// TestQuantize_Reference: blocks are those that ggml made, to the bit. The command is in testdata/quantize.py.
func TestQuantize_Reference(t *testing.T) {
	f, err := gguf.Open("testdata/quantize.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, _ := f.Tensor("x")
	x, err := tensor.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	for _, ty := range append(quantized, ggml.F16) {
		want, _ := f.Tensor(ty.String())
		got := make([]byte, ty.Bytes(len(x)))
		if err := ty.Quantize(got, x); err != nil || len(want.Data) != len(got) {
			t.Fatalf("%v: %v, %d bytes, want %d", ty, err, len(got), len(want.Data))
		}
		size := ty.Bytes(ty.Block())
		for at := 0; at < len(got); at += size {
			if !bytes.Equal(got[at:at+size], want.Data[at:at+size]) {
				t.Errorf("%v: elements from %d on: % x, want % x", ty, at/size*ty.Block(), got[at:at+size],
					want.Data[at:at+size])
			}
		}
	}
}

// TestQuantize_Error: an element changes by a step of its block at most. The step is that of the group with the largest
// scale, whose rounding to six or eight bits adds an eighth; minima are rounded too.
func TestQuantize_Error(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x, y := make([]float32, 256), make([]float32, 256)
	for range 300 {
		size, shift := math.Pow(10, 5*rng.Float64()-2), rng.NormFloat64()*float64(rng.IntN(2))
		for i := range x {
			x[i] = float32(size * (rng.NormFloat64() + shift))
		}
		for _, ty := range quantized {
			data := make([]byte, ty.Bytes(256))
			if err := ty.Quantize(data, x); err != nil {
				t.Fatal(err)
			}
			ty.Convert(y, data)
			block := ty.Block()
			for at := 0; at < 256; at += block {
				step := stepOf(ty, data[ty.Bytes(at):][:ty.Bytes(block)])
				for i := at; i < at+block; i++ {
					if d := math.Abs(float64(x[i]) - float64(y[i])); !(d <= step) {
						t.Fatalf("%v: %v becomes %v, %.3f steps away", ty, x[i], y[i], d/step)
					}
				}
			}
		}
	}
}

// stepOf returns by how much an element of a block may change.
func stepOf(ty ggml.Type, b []byte) float64 {
	var s ggml.Split
	ty.Split(&s, b)
	layout, _ := ty.Layout()
	largest := 0.0
	for _, scale := range s.S {
		largest = max(largest, math.Abs(float64(scale)))
	}
	d, m := halfOf(s.D), halfOf(s.M)
	if !layout.Super { // of float16, which rounds scales and minima to 11 bits
		return 1.01*d + m/1024
	}
	return 1.125*d*largest + m
}

// halfOf is the magnitude of a float16.
func halfOf(bits uint16) float64 {
	var y [1]float32
	ggml.F16.Convert(y[:], binary.LittleEndian.AppendUint16(nil, bits))
	return math.Abs(float64(y[0]))
}

// TestQuantize_Refused: what a type cannot hold is an error that says where it is.
func TestQuantize_Refused(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, ty := range append(quantized, ggml.F16, ggml.F32) {
		for _, bad := range []float32{inf, -inf, float32(math.NaN()), 3e38, -1e9} {
			if ty == ggml.F32 && bad-bad == 0 {
				continue
			}
			x := make([]float32, 512)
			x[300] = bad
			err := ty.Quantize(make([]byte, ty.Bytes(512)), x)
			if err == nil || !strings.Contains(err.Error(), "element 300 is") {
				t.Errorf("%v of %v: %v", ty, bad, err)
			}
		}
	}
	if ggml.Q2_K.Quantizable() || !ggml.Q4_K.Quantizable() || !ggml.F16.Quantizable() {
		t.Error("Quantizable is wrong")
	}
}

// FuzzQuantize: finite numbers are refused or become finite ones.
func FuzzQuantize(f *testing.F) {
	for _, v := range []float32{0, 1, -1e-40, 65504, 1e7, 3e38, float32(math.Inf(1))} {
		b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
		f.Add(bytes.Repeat(b, 5), uint8(7))
		f.Add(bytes.Repeat(append(b, 0, 0, 0, 0), 9), uint8(2))
	}
	f.Fuzz(func(t *testing.T, content []byte, period uint8) {
		var x, y [256]float32
		content = content[:min(len(content)/4*4, 4*(int(period)+1))]
		for i := range x {
			if at := 4 * i; len(content) > 0 {
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(content[at%len(content):]))
			}
		}
		for _, ty := range append(quantized, ggml.F16, ggml.F32) {
			data := make([]byte, ty.Bytes(256))
			err := ty.Quantize(data, x[:])
			ty.Convert(y[:], data)
			for i := range y {
				if finite := x[i]-x[i] == 0; err == nil && (!finite || y[i]-y[i] != 0) {
					t.Fatalf("%v: element %d, %v, becomes %v", ty, i, x[i], y[i])
				}
			}
		}
	})
}

func BenchmarkQuantize(b *testing.B) {
	x := make([]float32, 4096)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for _, ty := range quantized {
		b.Run(ty.String(), func(b *testing.B) {
			data := make([]byte, ty.Bytes(len(x)))
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				if err := ty.Quantize(data, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
