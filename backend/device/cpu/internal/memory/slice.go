package memory

import "unsafe"

// Slice returns n elements at an address.
func Slice[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

// Bytes returns memory as bytes.
func Bytes(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// Pointer returns the address of data, which is aligned.
func Pointer(data []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(data)) }
