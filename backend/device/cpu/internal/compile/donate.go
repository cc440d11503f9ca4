package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// donate finds inputs whose memory outputs can take over, should they be donated: the step that writes the output is
// the last to read the input, and works in place. Outputs and inputs are matched in their order, in which an update has
// new and old values.
//
//	before: output 0 = loop{AdamW of input 0, ...}
//	after:  output 0 in the memory of input 0, if the caller donates that
func (c *compiler) donate() error {
	taken := map[int]bool{}
	for i, o := range c.plan.Outputs {
		u := c.writer(o.Of).root()
		reads := slices.SortedFunc(slices.Values(u.reads), func(a, b ir.View) int { return a.Of.Index - b.Of.Index })
		for _, v := range reads {
			in := v.Of
			if in.Memory == ir.InInput && !taken[in.Index] && c.lives[in.ID].last == u.position && in.DType == o.Of.DType &&
				in.Count == o.Of.Count && replaces(u.step, o.Of, in) {
				c.plan.Outputs[i].Donor = in.Index
				taken[in.Index] = true
				break
			}
		}
	}
	return nil
}

// replaces reports whether a step works when out and in, of one size and type, share their memory.
func replaces(s ir.Step, out, in *ir.Tensor) bool {
	if l, ok := s.(*ir.Loop); ok {
		return replacesInLoop(l, out, in)
	}
	u := ir.UpdateOf(s)
	return u != nil && u.Out.Of == out && u.Operand.Of == in && u.Operand.Contiguous() && u.Operand.Off == 0 &&
		!slices.ContainsFunc(u.Others, func(v ir.View) bool { return v.Of == in })
}

// replacesInLoop reports whether a block of in is read at the positions where the same block of out is written, and not
// after that.
func replacesInLoop(l *ir.Loop, out, in *ir.Tensor) bool {
	read, write := -1, -1 // registers
	for _, x := range l.Instrs {
		switch {
		case x.Do >= ir.Apply:
		case x.View.Of == out:
			write = x.Dst
		case x.View.Of != in:
		case x.Do != ir.Alias || x.Row || x.View.Off != 0 || read >= 0:
			return false
		default:
			read = x.Dst
		}
	}
	order := l.Sequence()
	written := slices.IndexFunc(order, func(i int) bool {
		return l.Instrs[i].Do >= ir.Apply && slices.Contains(l.Instrs[i].Writes(), write)
	})
	return read >= 0 && written >= 0 && !slices.ContainsFunc(order[written+1:], func(i int) bool {
		return slices.Contains(l.Instrs[i].Reads(), read)
	})
}
