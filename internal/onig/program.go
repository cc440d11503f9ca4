package onig

import "math"

// opcode is what an instruction does at a position of the text.
type opcode uint8

const (
	opChar   opcode = iota // one character of set, then the next instruction
	opRun                  // the longest run of set, of min to max characters; shorter ones if the rest fails
	opLazy                 // the shortest run of set; longer ones if the rest fails
	opTake                 // only the longest run of set
	opSplit                // continue at x, and at y if that fails
	opAlt                  // the first of alts that leads to a match
	opJump                 // continue at x
	opLook                 // the program that follows must match, or not; continue at x
	opAtomic               // the first match of the program that follows; continue at x
	opAssert               // assert holds
	opMatch                // a match ends here
)

type inst struct {
	op       opcode
	set      *set
	min, max int
	x, y     int
	alts     *alternatives
	back     int // of opLook: how many characters before the position its program begins
	behind   bool
	negate   bool
	assert   assertion
}

// alternatives are branches. By first byte, fits has a bit for each branch that can match a text that begins with it;
// the last element is for the end of the text.
type alternatives struct {
	at   []int
	fits [257]uint64
}

// maxAlternatives is how many branches have a bit; further ones are nested in the last.
const maxAlternatives = 64

// maxProgram bounds the number of instructions to which repetitions are unrolled.
const maxProgram = 1 << 14

type compiler struct{ code []inst }

func compile(n node) []inst {
	c := &compiler{}
	c.emit(n)
	c.add(inst{op: opMatch})
	for i := range c.code {
		if c.code[i].op == opRun && c.final(i) {
			c.code[i].op = opTake
		}
	}
	return c.code
}

func (c *compiler) add(i inst) int {
	c.code = append(c.code, i)
	return len(c.code) - 1
}

func (c *compiler) emit(n node) {
	if len(c.code) > maxProgram {
		fail("its repetitions unroll to more than %d instructions", maxProgram)
	}
	switch n := n.(type) {
	case charNode:
		c.add(inst{op: opChar, set: n.set.freeze()})
	case seqNode:
		for _, inner := range n {
			c.emit(inner)
		}
	case altNode:
		c.alternatives(n)
	case repeatNode:
		c.repeat(n)
	case atomicNode:
		c.sub(inst{op: opAtomic}, n.what)
	case lookNode:
		c.look(n)
	case assertNode:
		c.add(inst{op: opAssert, assert: n.kind})
	}
}

// sub emits a program within the program.
func (c *compiler) sub(i inst, what node) {
	at := c.add(i)
	c.emit(what)
	c.add(inst{op: opMatch})
	c.code[at].x = len(c.code)
}

func (c *compiler) look(n lookNode) {
	alts, ok := n.what.(altNode)
	switch {
	case !n.behind:
		c.sub(inst{op: opLook, negate: n.negate}, n.what)
	case !ok || n.negate: // all of them must fail: check them in sequence
		if !ok {
			alts = altNode{n.what}
		}
		for _, alt := range alts {
			c.sub(inst{op: opLook, behind: true, back: fixedWidth(alt), negate: n.negate}, alt)
		}
	default:
		var looks altNode
		for _, alt := range alts {
			looks = append(looks, lookNode{what: alt, behind: true})
		}
		c.alternatives(looks)
	}
}

// fixedWidth returns how many characters n matches, which must not depend on the text.
func fixedWidth(n node) int {
	switch n := n.(type) {
	case charNode:
		return 1
	case assertNode, lookNode:
		return 0
	case atomicNode:
		return fixedWidth(n.what)
	case seqNode:
		sum := 0
		for _, inner := range n {
			sum += fixedWidth(inner)
		}
		return sum
	case repeatNode:
		if n.min == n.max {
			return fixedWidth(n.what) * n.min
		}
	}
	fail("a lookbehind must match a fixed number of characters")
	return 0
}

// alternatives emits the branches, each with a jump to the end of all.
func (c *compiler) alternatives(n altNode) {
	if len(n) > maxAlternatives {
		n = append(n[:maxAlternatives-1:maxAlternatives-1], n[maxAlternatives-1:])
	}
	alts := &alternatives{at: make([]int, len(n))}
	c.add(inst{op: opAlt, alts: alts})
	var jumps []int
	for i, inner := range n {
		alts.at[i] = len(c.code)
		var bytes [256]bool
		empty := first(inner, &bytes)
		for b := range alts.fits {
			if empty || b < 256 && bytes[b] {
				alts.fits[b] |= 1 << i
			}
		}
		c.emit(inner)
		jumps = append(jumps, c.add(inst{op: opJump}))
	}
	for _, j := range jumps {
		c.code[j].x = len(c.code)
	}
}

func (c *compiler) repeat(n repeatNode) {
	if n.max < 0 {
		n.max = math.MaxInt
	}
	if char, ok := n.what.(charNode); ok {
		op := map[repeatMode]opcode{greedy: opRun, lazy: opLazy, possessive: opTake}[n.mode]
		c.add(inst{op: op, set: char.set.freeze(), min: n.min, max: n.max})
		return
	}
	if n.mode == possessive {
		n.mode = greedy
		c.sub(inst{op: opAtomic}, n)
		return
	}
	for range n.min { // copies, and a loop if the repetition is unbounded
		c.emit(n.what)
	}
	if n.max == math.MaxInt {
		split := c.add(inst{op: opSplit})
		c.emit(n.what)
		c.add(inst{op: opJump, x: split})
		c.branch(split, n.mode)
		return
	}
	var splits []int
	for range n.max - n.min {
		splits = append(splits, c.add(inst{op: opSplit}))
		c.emit(n.what)
	}
	for _, s := range splits {
		c.branch(s, n.mode)
	}
}

// branch sets the targets of a split: the next instruction, and the end of the code so far.
func (c *compiler) branch(split int, mode repeatMode) {
	inside, outside := split+1, len(c.code)
	if mode == lazy {
		inside, outside = outside, inside
	}
	c.code[split].x, c.code[split].y = inside, outside
}

// final reports whether shorter runs need not be tried: the match ends after the run, or what follows cannot begin with
// one of its characters.
func (c *compiler) final(i int) bool {
	run, next := &c.code[i], i+1
	for c.code[next].op == opJump {
		next = c.code[next].x
	}
	switch follow := &c.code[next]; follow.op {
	case opMatch:
		return true
	case opChar:
		return !run.set.overlaps(follow.set)
	case opRun, opTake, opLazy:
		return follow.min > 0 && !run.set.overlaps(follow.set)
	}
	return false
}

// first marks the bytes that a match of n can begin with. empty reports whether it can match the empty text.
func first(n node, bytes *[256]bool) (empty bool) {
	switch n := n.(type) {
	case charNode:
		n.set.freeze().first(bytes)
		return false
	case seqNode:
		for _, inner := range n {
			if !first(inner, bytes) {
				return false
			}
		}
		return true
	case altNode:
		for _, inner := range n {
			empty = first(inner, bytes) || empty
		}
		return empty
	case repeatNode:
		return first(n.what, bytes) || n.min == 0
	case atomicNode:
		return first(n.what, bytes)
	}
	return true
}
