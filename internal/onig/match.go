package onig

import (
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// matcher searches one text for matches.
type matcher struct {
	re    *Regexp
	text  string
	stack []frame
	steps int // of the search: backtracks, and characters of runs

	// Once a search has taken too many steps:
	memo     *memo         // nil until then
	outcomes map[state]int // where the programs of lookaround and atomic groups end; -1 if they fail
	inner    map[int]*memo // the failures within each of these programs
	runs     map[int]run   // by instruction: the last run of its set
}

// memo records the states that failed.
type memo struct {
	failed map[state]uint64 // choices: a bit for each of 64 positions, whose number is in the state
	// ends are of runs, by their longest end: the shortest end that failed, as all longer ones did.
	ends map[state]int
}

func newMemo() *memo { return &memo{map[state]uint64{}, map[state]int{}} }

// run is a maximal part of the text with only characters of a set.
type run struct{ start, end int }

// state is a position in the program and in the text. Whether a match follows depends on nothing else.
type state struct{ pc, pos int }

// frame is a choice to backtrack to.
type frame struct {
	pc, pos int
	next    int // of opAlt: the alternative to try; of opRun: the shortest end
	end     int // of opRun: the longest end; of opLazy: the shortest
}

// patience is how many steps a search may take for each character before it begins to memoize.
const patience = 8

// search returns the first match that begins at or after from.
func (m *matcher) search(from int) (start, end int, ok bool) {
	m.steps, m.memo, m.outcomes = 0, nil, nil
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
		m.rememberWhenLong()
	}
	return 0, 0, false
}

// rememberWhenLong begins to memoize once a search has taken too many steps.
func (m *matcher) rememberWhenLong() {
	if m.memo == nil && m.steps > patience*(len(m.text)+100) {
		m.remember()
	}
}

func (m *matcher) remember() {
	m.memo, m.outcomes, m.inner, m.runs = newMemo(), map[state]int{}, map[int]*memo{}, map[int]run{}
}

// hopeless reports whether a choice has failed before.
func (m *matcher) hopeless(pc, pos int) bool {
	if m.memo == nil {
		return false
	}
	s, bit := state{pc, pos / 64}, uint64(1)<<(pos%64)
	seen := m.memo.failed[s]
	m.memo.failed[s] = seen | bit
	return seen&bit != 0
}

// longest returns the end of the longest run of an instruction's set, and its number of characters; if that is above
// fewest, it may return fewest+1 instead.
func (m *matcher) longest(i *inst, pc, pos int) (end, n int) {
	if m.memo == nil || i.max != math.MaxInt {
		end, n = i.set.run(m.text, pos, i.max)
		m.steps += n / 16
		return end, n
	}
	_, n = i.set.run(m.text, pos, i.min+1)
	switch r := m.runs[pc]; {
	case r.start <= pos && pos < r.end:
		return r.end, n
	case pos < r.start: // it may extend up to the known run
		if end, _ = i.set.run(m.text[:r.start], pos, i.max); end == r.start {
			end = r.end
		}
	default:
		end, _ = i.set.run(m.text, pos, i.max)
	}
	m.runs[pc] = run{pos, end}
	return end, n
}

// untried returns the longest end of a run that has not failed yet; ok is false if there is none.
func (m *matcher) untried(i *inst, pc, end, shortest int) (next int, ok bool) {
	if m.memo == nil || i.max != math.MaxInt {
		return end, true
	}
	next = end
	if tried, seen := m.memo.ends[state{pc, end}]; seen {
		if tried <= shortest {
			return 0, false
		}
		_, size := utf8.DecodeLastRuneInString(m.text[:tried])
		next = tried - size
	}
	m.memo.ends[state{pc, end}] = next
	return next, true
}

// run executes the program from pc on, and returns the end of the match that begins at pos.
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
			pos, n = m.longest(i, pc, pos)
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

// choose takes the first of several choices, and pushes the others.
func (m *matcher) choose(i *inst, pc, pos int) (int, int, bool) {
	if m.hopeless(pc, pos) {
		return 0, 0, false
	}
	switch i.op {
	case opSplit:
		m.stack = append(m.stack, frame{pc: pc, pos: pos})
		return i.x, pos, true
	case opAlt:
		return m.branch(i, pc, pos, 0)
	case opLazy:
		end, n := i.set.run(m.text, pos, i.min)
		if n < i.min {
			return 0, 0, false
		}
		if m.exhausted(i, pc, pos, end) {
			return 0, 0, false
		}
		m.stack = append(m.stack, frame{pc, end, n, end})
		return pc + 1, end, true
	}
	// Take the longest run, and push the shorter ones.
	end, n := m.longest(i, pc, pos)
	if n < i.min {
		return 0, 0, false
	}
	shortest, _ := i.set.run(m.text, pos, i.min)
	next, ok := m.untried(i, pc, end, shortest)
	if !ok {
		return 0, 0, false
	}
	if next > shortest {
		m.stack = append(m.stack, frame{pc, next, shortest, end})
	}
	return pc + 1, next, true
}

// branch takes the first alternative, k or later, that can begin with the text at pos.
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
		m.stack = append(m.stack, frame{pc: pc, pos: pos, next: bits.TrailingZeros64(rest)})
	}
	return i.alts.at[bits.TrailingZeros64(fits)], pos, true
}

// back backtracks to the last choice, and takes its next alternative.
func (m *matcher) back(base int) (pc, pos int, ok bool) {
	for len(m.stack) > base {
		m.steps++
		m.rememberWhenLong()
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
				m.exhaust(i, f)
				continue
			}
			m.stack[top] = frame{f.pc, f.pos + n, f.next + 1, f.end}
			return f.pc + 1, f.pos + n, true
		case opRun:
			_, n := utf8.DecodeLastRuneInString(m.text[f.next:f.pos])
			if m.stack[top].pos = f.pos - n; f.pos-n == f.next {
				m.stack = m.stack[:top]
			}
			if m.memo != nil && i.max == math.MaxInt {
				s := state{f.pc, f.end} // the ends between this and the longest have been tried before
				if before, seen := m.memo.ends[s]; seen && f.pos-n < before {
					m.memo.ends[s] = f.pos - n
				}
			}
			return f.pc + 1, f.pos - n, true
		}
	}
	return 0, 0, false
}

// exhaust records that a lazy run failed with all its ends.
func (m *matcher) exhaust(i *inst, f frame) {
	if m.memo == nil || i.max != math.MaxInt {
		return
	}
	s := state{f.pc, f.pos}
	if first, seen := m.memo.ends[s]; !seen || f.end < first {
		m.memo.ends[s] = f.end
	}
}

// exhausted reports whether all ends of a lazy run, from the shortest on, have failed before.
func (m *matcher) exhausted(i *inst, pc, pos, shortest int) bool {
	if m.memo == nil || i.max != math.MaxInt {
		return false
	}
	end, _ := m.longest(i, pc, pos)
	first, seen := m.memo.ends[state{pc, end}]
	return seen && first <= shortest
}

// nested executes the program of a lookaround or atomic group.
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

// outcome returns the end of the match of the program at pc, or -1.
func (m *matcher) outcome(pc, pos int) int {
	s := state{pc, pos}
	if end, known := m.outcomes[s]; known {
		return end
	}
	outer := m.memo
	if outer != nil { // failures within do not carry over to the outside, nor vice versa
		if m.inner[pc] == nil {
			m.inner[pc] = newMemo()
		}
		m.memo = m.inner[pc]
	}
	end, ok := m.run(pc, pos)
	if !ok {
		end = -1
	}
	if m.memo != nil {
		m.inner[pc] = m.memo
		if ok {
			delete(m.inner, pc) // it has states that did not fail
		}
		if m.memo = outer; outer == nil { // the search began to memoize within the program
			m.memo = newMemo()
		}
	}
	if m.outcomes != nil {
		m.outcomes[s] = end
	}
	return end
}

// before returns the offset n characters before pos.
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
	case behindNewline:
		return pos == 0 || m.text[pos-1] == '\n'
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
