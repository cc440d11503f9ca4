package vec

import "unsafe"

var kernelsOf = [numLevels]*kernels{Portable: &kernelsPortable, NEON: &kernelsNEON}

//go:noescape
func prefetchLines(p unsafe.Pointer, lines int)

// wholeFused is [wholeUnary] for fused kernels. A sum is finished by the portable one, of no elements if need be.
func wholeFused(width int, body, rest func(call *FusedCall)) func(call *FusedCall) {
	return func(call *FusedCall) {
		n := call.N
		whole := n &^ (width - 1)
		call.N = whole
		body(call)
		call.N = n - whole
		if call.N == 0 {
			whole = 0 // no pointer leaves its memory
		}
		call.move(whole)
		rest(call)
		call.move(-whole)
		call.N = n
	}
}

// move moves the operands by so many elements.
func (c *FusedCall) move(n int) {
	for _, list := range [][]unsafe.Pointer{c.Out[:], c.In[:]} {
		for i, p := range list {
			if p != nil {
				list[i] = unsafe.Add(p, 4*n)
			}
		}
	}
}
