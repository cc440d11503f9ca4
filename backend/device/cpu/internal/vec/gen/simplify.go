package main

// simplify returns the program for a machine whose registers hold floats and words alike: without casts, without opTail
// if whole is true, and without instructions that nobody needs.
func (p *program) simplify(whole bool) *program {
	same := make([]val, len(p.ins))
	for i, in := range p.ins {
		same[i] = val(i)
		switch {
		case in.op == opFloatBits, in.op == opWordBits, in.op == opTail && whole:
			same[i] = same[in.args[0]]
		}
	}
	return p.rewrite(same)
}

// rewrite returns the instructions that are needed, with each value in the place of those that are the same.
func (p *program) rewrite(same []val) *program {
	needed := make([]bool, len(p.ins))
	for i := len(p.ins) - 1; i >= 0; i-- {
		in := p.ins[i]
		if in.op != opStore && in.op != opSetAcc && !needed[i] {
			continue
		}
		needed[i] = true
		for _, a := range in.args {
			needed[same[a]] = true
		}
	}
	q := newProgram(p.has)
	now := make([]val, len(p.ins))
	for i, in := range p.ins {
		if same[i] != val(i) || !needed[i] {
			continue
		}
		args := make([]val, len(in.args))
		for j, a := range in.args {
			args[j] = now[same[a]]
		}
		now[i] = q.add(in.op, in.kind, in.imm, args...)
	}
	return q
}

// prune returns the program without instructions that nobody needs.
func (p *program) prune() *program {
	same := make([]val, len(p.ins))
	for i := range p.ins {
		same[i] = val(i)
	}
	return p.rewrite(same)
}
