package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// allocate gives tensors that are needed at the same time different memory of one arena.
//
//	before: t3 is needed in steps 2 to 5, t4 in 3 to 4, t7 in 6 to 8
//	after:  t3 at 0, t4 behind it, t7 at 0 again
func (c *compiler) allocate() error {
	var list []*ir.Tensor
	for _, t := range c.tensors {
		switch {
		case t.Memory != ir.InArena:
		case c.writer(t) == nil || !c.isOutside(t) || t.Virtual:
			t.Memory = ir.InNothing
		default:
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *ir.Tensor) int { return b.Bytes() - a.Bytes() }) // large ones first
	var placed []*ir.Tensor                                                                 // by offset
	for _, t := range list {
		// The lowest offset at which t fits between the tensors that are needed when it is.
		life := c.lives[t.ID]
		t.Offset = 0
		for _, p := range placed {
			if other := c.lives[p.ID]; other.last < life.first || life.last < other.first {
				continue
			}
			if p.Offset >= t.Offset+memory.Round(t.Bytes()) {
				break
			}
			t.Offset = max(t.Offset, p.Offset+memory.Round(p.Bytes()))
		}
		c.plan.Arena = max(c.plan.Arena, t.Offset+memory.Round(t.Bytes()))
		at, _ := slices.BinarySearchFunc(placed, t.Offset, func(p *ir.Tensor, off int) int { return p.Offset - off })
		placed = slices.Insert(placed, at, t)
	}
	c.plan.Tensors = c.tensors
	return nil
}
