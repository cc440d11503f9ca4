package onig

import (
	"errors"
	"fmt"
	"math"
)

// opcode is what an instruction does at a place of the text.
type opcode uint8

const (
	opChar   opcode = iota // one character of set, then the next instruction
	opRun                  // the longest run of set, between min and max characters; shorter ones when the rest fails
	opLazy                 // the shortest run of set; longer ones when the rest fails
	opTake                 // the longest run of set, and no other
	opSplit                // go on at x, and at y when that fails
	opAlt                  // the first of alts that leads to a match
	opJump                 // go on at x
	opLook                 // the program behind must match, or not; go on at x
	opAtomic               // the first match of the program behind; go on at x
	opAssert               // assert holds
	opMatch                // a match ends here
)

type inst struct {
	op       opcode
	set      *set
	min, max int
	x, y     int
	alts     *alternatives
	back     int // of opLook: how many characters before the place the program begins
	behind   bool
	negate   bool
	assert   assertion
}

// alternatives are branches. fits has a bit for each that can match a text that begins with the byte; the last place is
// for no text at all.
type alternatives struct {
	at   []int
	fits [257]uint64
}

// maxAlternatives is how many branches have a bit; those behind them are branches of the last.
const maxAlternatives = 64

// maxProgram bounds the instructions that repetitions unfold to.
const maxProgram = 1 << 14

type compiler struct{ code []inst }

func compile(n node) ([]inst, error) {
	c := &compiler{}
	if err := c.emit(n); err != nil {
		return nil, err
	}
	c.add(inst{op: opMatch})
	for i := range c.code {
		if c.code[i].op == opRun && c.final(i) {
			c.code[i].op = opTake
		}
	}
	return c.code, nil
}

func (c *compiler) add(i inst) int {
	c.code = append(c.code, i)
	return len(c.code) - 1
}

func (c *compiler) emit(n node) error {
	if len(c.code) > maxProgram {
		return fmt.Errorf("it unfolds to more than %d instructions", maxProgram)
	}
	switch n := n.(type) {
	case charNode:
		c.add(inst{op: opChar, set: n.set.freeze()})
	case seqNode:
		for _, inner := range n {
			if err := c.emit(inner); err != nil {
				return err
			}
		}
	case altNode:
		return c.alternatives(n)
	case repeatNode:
		return c.repeat(n)
	case atomicNode:
		return c.sub(inst{op: opAtomic}, n.what)
	case lookNode:
		return c.look(n)
	case assertNode:
		c.add(inst{op: opAssert, assert: n.kind})
	}
	return nil
}

// sub emits a program within the program.
func (c *compiler) sub(i inst, what node) error {
	at := c.add(i)
	if err := c.emit(what); err != nil {
		return err
	}
	c.add(inst{op: opMatch})
	c.code[at].x = len(c.code)
	return nil
}

func (c *compiler) look(n lookNode) error {
	if !n.behind {
		return c.sub(inst{op: opLook, negate: n.negate}, n.what)
	}
	alts, ok := n.what.(altNode)
	if !ok {
		alts = altNode{n.what}
	}
	if n.negate || len(alts) == 1 { // all of them must fail: one after the other
		for _, alt := range alts {
			width, err := fixedWidth(alt)
			if err != nil {
				return err
			}
			if err := c.sub(inst{op: opLook, behind: true, back: width, negate: n.negate}, alt); err != nil {
				return err
			}
		}
		return nil
	}
	var looks altNode
	for _, alt := range alts {
		looks = append(looks, lookNode{what: alt, behind: true})
	}
	return c.alternatives(looks)
}

// fixedWidth returns how many characters n matches, which must not depend on the text.
func fixedWidth(n node) (int, error) {
	switch n := n.(type) {
	case charNode:
		return 1, nil
	case assertNode, lookNode:
		return 0, nil
	case atomicNode:
		return fixedWidth(n.what)
	case seqNode:
		sum := 0
		for _, inner := range n {
			w, err := fixedWidth(inner)
			if err != nil {
				return 0, err
			}
			sum += w
		}
		return sum, nil
	case repeatNode:
		if n.min == n.max {
			w, err := fixedWidth(n.what)
			return w * n.min, err
		}
	}
	return 0, errors.New("a lookbehind must match a fixed number of characters")
}

// alternatives emits the branches, each with a jump behind all of them.
func (c *compiler) alternatives(n altNode) error {
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
		if err := c.emit(inner); err != nil {
			return err
		}
		jumps = append(jumps, c.add(inst{op: opJump}))
	}
	for _, j := range jumps {
		c.code[j].x = len(c.code)
	}
	return nil
}

func (c *compiler) repeat(n repeatNode) error {
	if n.max < 0 {
		n.max = math.MaxInt
	}
	char, isChar := n.what.(charNode)
	switch {
	case n.mode == possessive:
		greedily := n
		greedily.mode = greedy
		if !isChar {
			return c.sub(inst{op: opAtomic}, greedily)
		}
		c.add(inst{op: opTake, set: char.set.freeze(), min: n.min, max: n.max})
		return nil
	case isChar:
		op := opRun
		if n.mode == lazy {
			op = opLazy
		}
		c.add(inst{op: op, set: char.set.freeze(), min: n.min, max: n.max})
		return nil
	}
	return c.unfold(n)
}

// unfold emits a repeated group as copies, and a loop when there is no end.
func (c *compiler) unfold(n repeatNode) error {
	for range n.min {
		if err := c.emit(n.what); err != nil {
			return err
		}
	}
	if n.max == math.MaxInt {
		split := c.add(inst{op: opSplit})
		if err := c.emit(n.what); err != nil {
			return err
		}
		c.add(inst{op: opJump, x: split})
		c.branch(split, n.mode)
		return nil
	}
	var splits []int
	for range n.max - n.min {
		splits = append(splits, c.add(inst{op: opSplit}))
		if err := c.emit(n.what); err != nil {
			return err
		}
	}
	for _, s := range splits {
		c.branch(s, n.mode)
	}
	return nil
}

// branch makes a split choose between what follows it and the end of the code so far.
func (c *compiler) branch(split int, mode repeatMode) {
	inside, outside := split+1, len(c.code)
	if mode == lazy {
		inside, outside = outside, inside
	}
	c.code[split].x, c.code[split].y = inside, outside
}

// final reports whether a run need not be tried shorter: the match ends behind it, or what follows cannot begin with a
// character of it.
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

// first marks the bytes that a match of n can begin with. empty reports that it can match no text at all.
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
