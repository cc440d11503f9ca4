package onig

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// matcher looks for matches in one text.
type matcher struct {
	re    *Regexp
	text  string
	stack []frame
	steps int // of the search: choices that were taken back

	// Once a search took too many steps:
	failed   map[state]struct{}         // states that lead to no match
	outcomes map[state]int              // where the programs of lookaround and atomic groups end; -1: nowhere
	inner    map[int]map[state]struct{} // what failed within each of these programs
}

// state is a place in the program and in the text. Nothing else decides whether a match follows.
type state struct{ pc, pos int }

// frame is a choice that can be taken back: where to go on instead.
type frame struct {
	pc, pos int
	next    int // of opAlt: the alternative to try; of opRun: the shortest end
}

// patience is how many steps a search may take for each character before it begins to remember.
const patience = 8

// search returns the first match that begins at from or later.
func (m *matcher) search(from int) (start, end int, ok bool) {
	m.steps, m.failed, m.outcomes = 0, nil, nil
	if m.re.guarded {
		m.remember()
	}
	for start = from; start <= len(m.text); start += width(m.text, start) {
		if !m.re.empty && (start == len(m.text) || !m.re.first[m.text[start]]) {
			continue
		}
		if end, ok = m.run(0, start); ok {
			return start, end, true
		}
	}
	return 0, 0, false
}

func (m *matcher) remember() {
	m.failed, m.outcomes, m.inner = map[state]struct{}{}, map[state]int{}, map[int]map[state]struct{}{}
}

// hopeless reports whether a choice was there before, and failed.
func (m *matcher) hopeless(pc, pos int) bool {
	if m.failed == nil {
		return false
	}
	s := state{pc, pos}
	if _, seen := m.failed[s]; seen {
		return true
	}
	m.failed[s] = struct{}{}
	return false
}

// run executes the program from pc on, and returns where the match that begins at pos ends.
func (m *matcher) run(pc, pos int) (end int, ok bool) {
	base := len(m.stack)
	for {
		i := &m.re.code[pc]
		ok = true
		switch i.op {
		case opMatch:
			m.stack = m.stack[:base]
			return pos, true
		case opChar:
			n := i.set.at(m.text, pos)
			ok = n > 0
			pc, pos = pc+1, pos+n
		case opTake:
			var n int
			pos, n = i.set.run(m.text, pos, i.max)
			ok = n >= i.min
			pc++
		case opJump:
			pc = i.x
		case opAssert:
			ok = m.holds(i.assert, pos)
			pc++
		case opLook, opAtomic:
			pc, pos, ok = m.nested(i, pc, pos)
		default:
			pc, pos, ok = m.choose(i, pc, pos)
		}
		if !ok {
			if pc, pos, ok = m.back(base); !ok {
				return 0, false
			}
		}
	}
}

// choose makes the first of some choices, and notes the others.
func (m *matcher) choose(i *inst, pc, pos int) (int, int, bool) {
	if m.hopeless(pc, pos) {
		return 0, 0, false
	}
	switch i.op {
	case opSplit:
		m.stack = append(m.stack, frame{pc, pos, 0})
		return i.x, pos, true
	case opAlt:
		return m.branch(i, pc, pos, 0)
	case opLazy:
		end, n := i.set.run(m.text, pos, i.min)
		if n < i.min {
			return 0, 0, false
		}
		m.stack = append(m.stack, frame{pc, end, n})
		return pc + 1, end, true
	}
	end, n := i.set.run(m.text, pos, i.max) // opRun
	if n < i.min {
		return 0, 0, false
	}
	if n > i.min {
		shortest, _ := i.set.run(m.text, pos, i.min)
		m.stack = append(m.stack, frame{pc, end, shortest})
	}
	return pc + 1, end, true
}

// branch goes to the first alternative, k or later, that can begin with what is at pos.
func (m *matcher) branch(i *inst, pc, pos, k int) (int, int, bool) {
	next := 256 // the end
	if pos < len(m.text) {
		next = int(m.text[pos])
	}
	fits := i.alts.fits[next] >> k << k
	if fits == 0 {
		return 0, 0, false
	}
	if rest := fits & (fits - 1); rest != 0 {
		m.stack = append(m.stack, frame{pc, pos, bits.TrailingZeros64(rest)})
	}
	return i.alts.at[bits.TrailingZeros64(fits)], pos, true
}

// back takes the last choice back and makes the next one.
func (m *matcher) back(base int) (pc, pos int, ok bool) {
	for len(m.stack) > base {
		if m.steps++; m.steps > patience*(len(m.text)+100) && m.failed == nil {
			m.remember()
		}
		top := len(m.stack) - 1
		f := m.stack[top]
		i := &m.re.code[f.pc]
		switch i.op {
		case opSplit:
			m.stack = m.stack[:top]
			return i.y, f.pos, true
		case opAlt:
			m.stack = m.stack[:top]
			if pc, pos, ok = m.branch(i, f.pc, f.pos, f.next); ok {
				return pc, pos, true
			}
		case opLazy:
			n := i.set.at(m.text, f.pos)
			if n == 0 || f.next == i.max {
				m.stack = m.stack[:top]
				continue
			}
			m.stack[top] = frame{f.pc, f.pos + n, f.next + 1}
			return f.pc + 1, f.pos + n, true
		case opRun:
			_, n := utf8.DecodeLastRuneInString(m.text[f.next:f.pos])
			if m.stack[top].pos = f.pos - n; f.pos-n == f.next {
				m.stack = m.stack[:top]
			}
			return f.pc + 1, f.pos - n, true
		}
	}
	return 0, 0, false
}

// nested executes the program of a lookaround or an atomic group.
func (m *matcher) nested(i *inst, pc, pos int) (int, int, bool) {
	end, begins := -1, true
	from := pos
	if i.behind {
		from, begins = m.before(pos, i.back)
	}
	if begins {
		end = m.outcome(pc+1, from)
	}
	matched := end >= 0 && (!i.behind || end == pos)
	if i.op == opAtomic {
		return i.x, end, matched
	}
	return i.x, pos, matched != i.negate
}

// outcome returns where the program at pc ends, or -1.
func (m *matcher) outcome(pc, pos int) int {
	s := state{pc, pos}
	if end, known := m.outcomes[s]; known {
		return end
	}
	outer := m.failed
	if outer != nil { // what fails within may not fail outside, and the other way round
		if m.inner[pc] == nil {
			m.inner[pc] = map[state]struct{}{}
		}
		m.failed = m.inner[pc]
	}
	end, ok := m.run(pc, pos)
	if !ok {
		end = -1
	}
	if outer != nil {
		m.failed = outer
		if ok {
			delete(m.inner, pc) // it holds states that did not fail
		}
	}
	if m.outcomes != nil {
		m.outcomes[s] = end
	}
	return end
}

// before returns the place n characters before pos.
func (m *matcher) before(pos, n int) (int, bool) {
	for ; n > 0; n-- {
		if pos == 0 {
			return 0, false
		}
		_, size := utf8.DecodeLastRuneInString(m.text[:pos])
		pos -= size
	}
	return pos, true
}

func (m *matcher) holds(a assertion, pos int) bool {
	switch a {
	case lineStart:
		return pos == 0 || m.text[pos-1] == '\n' && pos < len(m.text)
	case lineEnd:
		return pos == len(m.text) || m.text[pos] == '\n'
	case textStart:
		return pos == 0
	case textEnd:
		return pos == len(m.text)
	case textEndOrNewline:
		return strings.TrimSuffix(m.text[pos:], "\n") == ""
	}
	before, _ := utf8.DecodeLastRuneInString(m.text[:pos])
	after, _ := utf8.DecodeRuneInString(m.text[pos:])
	boundary := (pos > 0 && isWord(before)) != (pos < len(m.text) && isWord(after))
	return boundary == (a == wordBoundary)
}

func isWord(r rune) bool { return inSpans(unicodeTables().spans["Word"], r) }
