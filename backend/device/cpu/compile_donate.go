package cpu

import "slices"

// donate finds inputs whose memory outputs can take over, should they be donated: the step that writes the output is the
// last to read the input, and works in place. Outputs and inputs are matched in their order, in which an update has new and
// old values.
//
//	before: output 0 = loop{AdamW of input 0, ...}
//	after:  output 0 in the memory of input 0, if the caller donates that
func (c *compiler) donate() error {
	taken := map[int]bool{}
	for i, o := range c.plan.outputs {
		u := c.writer(o.of).root()
		reads := slices.SortedFunc(slices.Values(u.reads), func(a, b view) int { return a.of.index - b.of.index })
		for _, v := range reads {
			in := v.of
			if in.memory == inInput && !taken[in.index] && c.lives[in.id].last == u.position && in.kind == o.of.kind &&
				in.count == o.of.count && replaces(u.step, o.of, in) {
				c.plan.outputs[i].donor = in.index
				taken[in.index] = true
				break
			}
		}
	}
	return nil
}

// replaces reports whether a step works when out and in, of one size and type, share their memory.
func replaces(s step, out, in *tensor) bool {
	if l, ok := s.(*loop); ok {
		return replacesInLoop(l, out, in)
	}
	u := isUpdate(s)
	return u != nil && u.operand.of == in && u.operand.contiguous() && u.operand.off == 0 &&
		!slices.ContainsFunc(u.others, func(v view) bool { return v.of == in })
}

// replacesInLoop reports whether a block of in is read at the positions where the same block of out is written, and not
// after that.
func replacesInLoop(l *loop, out, in *tensor) bool {
	read, write := -1, -1 // registers
	for _, x := range l.instrs {
		switch {
		case x.do >= doApply:
		case x.v.of == out:
			write = x.dst
		case x.v.of != in:
		case x.do != doAlias || x.row || x.v.off != 0 || read >= 0:
			return false
		default:
			read = x.dst
		}
	}
	order := l.sequence()
	written := slices.IndexFunc(order, func(i int) bool {
		return l.instrs[i].do >= doApply && slices.Contains(l.instrs[i].writes(), write)
	})
	return read >= 0 && written >= 0 && !slices.ContainsFunc(order[written+1:], func(i int) bool {
		return slices.Contains(l.instrs[i].reads(), read)
	})
}
