package cpu

import "slices"

// inPlace is a step that can write over what it reads.
type inPlace interface {
	// replaces reports whether the step works when out and in, of one size and type, share their memory.
	replaces(out, in *tensor) bool
}

// donors finds inputs whose memory outputs can take over, should they be donated: the step that writes the output is the
// last to read the input, and works in place. Outputs and inputs come together in their order, in which an update has new and old
// values.
func (c *compiler) donors(e *executable) {
	taken := map[int]bool{}
	for i, o := range e.outputs {
		u := o.of.writer.root()
		s, ok := u.step.(inPlace)
		if !ok {
			continue
		}
		reads := slices.SortedFunc(slices.Values(u.reads), func(a, b view) int { return a.of.index - b.of.index })
		for _, v := range reads {
			in := v.of
			if in.place == inInput && !taken[in.index] && in.last == u.position && in.kind == o.of.kind && in.count == o.of.count && s.replaces(o.of, in) {
				e.outputs[i].donor = in.index
				taken[in.index] = true
				break
			}
		}
	}
}

// replaces: a block of in is read at the places where the same block of out is written, and not after that.
func (l *loop) replaces(out, in *tensor) bool {
	read, write := -1, -1 // registers
	for _, x := range l.instrs {
		switch {
		case x.do >= apply:
		case x.v.of == out:
			write = x.dst
		case x.v.of != in:
		case x.do != point || x.row || x.v.off != 0 || read >= 0:
			return false
		default:
			read = x.dst
		}
	}
	order := l.sequence()
	written := slices.IndexFunc(order, func(i int) bool { return l.instrs[i].do >= apply && slices.Contains(l.instrs[i].writes(), write) })
	return read >= 0 && written >= 0 && !slices.ContainsFunc(order[written+1:], func(i int) bool {
		return slices.Contains(l.instrs[i].reads(), read)
	})
}

// updateStep writes into a copy of its first operand, or into the operand itself.
type updateStep struct {
	out, operand view // operand is collapsed
	reads        []view
	update       func(r *run)
}

func newUpdate(out view, in []view, update func(r *run)) step {
	return updateStep{out, in[0].collapse(), in[1:], update}
}

func (s updateStep) run(r *run) {
	if r.at[s.operand.of.id] != r.at[s.out.of.id] {
		copyView(r, s.out, 0, s.operand)
	}
	s.update(r)
}

func (s updateStep) replaces(_, in *tensor) bool {
	return s.operand.of == in && s.operand.contiguous() && s.operand.off == 0 &&
		!slices.ContainsFunc(s.reads, func(v view) bool { return v.of == in })
}
