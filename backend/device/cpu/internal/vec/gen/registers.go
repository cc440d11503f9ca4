package main

import "fmt"

// registers hands out the registers of one kind.
type registers struct {
	free []int
	used int // the most that were taken at once
	all  int
}

func newRegisters(from, to int) *registers {
	r := &registers{}
	for i := to - 1; i >= from; i-- {
		r.free = append(r.free, i)
	}
	r.all = len(r.free)
	return r
}

func (r *registers) take(why string) int {
	if len(r.free) == 0 {
		panic(fmt.Sprintf("no register is left for %s", why))
	}
	n := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	r.used = max(r.used, r.all-len(r.free))
	return n
}

func (r *registers) give(n int) { r.free = append(r.free, n) }

// constants numbers the different constants of a file.
type constants struct {
	index map[uint32]int
	list  []uint32
}

func newConstants() *constants { return &constants{index: map[uint32]int{}} }

func (c *constants) number(bits uint32) int {
	if i, ok := c.index[bits]; ok {
		return i
	}
	c.index[bits] = len(c.list)
	c.list = append(c.list, bits)
	return len(c.list) - 1
}
