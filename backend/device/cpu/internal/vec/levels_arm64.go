package vec

import "unsafe"

var kernelsOf = [numLevels]*kernels{Portable: &kernelsPortable, NEON: &kernelsNEON}

// wholeFused is [wholeUnary] for fused kernels.
func wholeFused(width int, body, rest func(c *FusedCall)) func(c *FusedCall) {
	return func(c *FusedCall) {
		n := c.N
		whole := n &^ (width - 1)
		c.N = whole
		body(c)
		c.N = n - whole
		c.move(whole)
		rest(c)
		c.N = n
		c.move(-whole)
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
