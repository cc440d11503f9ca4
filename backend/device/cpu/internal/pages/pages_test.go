package pages

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// Memory is aligned as asked for, is all there, and is zero.
func TestNew(t *testing.T) {
	for _, size := range []int{0, 1, Line, Huge - 1, Huge, 3*Huge + 5} {
		for _, aligned := range []bool{false, true} {
			t.Run(fmt.Sprint(size, aligned), func(t *testing.T) {
				p := New(size, aligned)
				align := uintptr(Line)
				if aligned {
					align = Huge
				}
				assert.Zero(t, uintptr(p)%align)
				memory := unsafe.Slice((*byte)(p), size)
				assert.Len(t, bytes.Trim(memory, "\x00"), 0)
				for i := range memory {
					memory[i] = 1
				}
			})
		}
	}
}
