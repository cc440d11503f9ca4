package gemm

import "unsafe"

// packing tells a kernel to copy a block of k lines of numbers, where numbers or lines are contiguous in the
// source. Strides are bytes.
type packing struct {
	dst, src unsafe.Pointer
	dstLine  int // from a line to the next
	srcLine  int // from a line to the next; transpose: from a number of a line; blocks: from a block to the next
	width    int // numbers of a line, 1 to 32; kernels that transpose take fewer
	k        int // lines, or blocks
	ahead    int // from the source to what is needed later
	lanes    int // numbers of a line that are written, as bits
}

// copyLines copies contiguous lines:
// dst[k*dstLine + i] = src[k*srcLine + i].
func copyLines(p *packing) {
	for k := range p.k {
		copy(floats(unsafe.Add(p.dst, k*p.dstLine), p.width), floats(unsafe.Add(p.src, k*p.srcLine), p.width))
	}
}

// transposeLines copies lines whose numbers lie apart, while the lines lie side by side:
// dst[k*dstLine + i] = src[i*srcLine + k].
func transposeLines(p *packing) {
	for i := range p.width {
		src := floats(unsafe.Add(p.src, i*p.srcLine), p.k)
		for k, v := range src {
			*(*float32)(unsafe.Add(p.dst, k*p.dstLine+4*i)) = v
		}
	}
}
