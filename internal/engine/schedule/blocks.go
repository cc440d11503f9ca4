package schedule

import "fmt"

// blocks are the numbers of the blocks of a cache. Number 0 belongs to nobody.
//
// A device reads blocks that follow one another as one. So a sequence gets those behind its last one where it can, and
// new ones begin where there is most room.
type blocks struct {
	taken []bool
	free  int
}

func newBlocks(n int) *blocks {
	b := &blocks{taken: make([]bool, n), free: n - 1}
	b.taken[0] = true
	return b
}

// take returns a free block, the one behind a block if it is free. It reports false if there is none. many says that
// others are taken after it.
func (b *blocks) take(behind int32, many bool) (block int32, ok bool) {
	if b.free == 0 {
		return 0, false
	}
	at := int(behind) + 1
	if at >= len(b.taken) || b.taken[at] {
		from, n := b.longest()
		at = from
		if !many && n >= 8 { // those around it have room to grow
			at = from + n/2
		}
	}
	b.taken[at] = true
	b.free--
	return int32(at), true
}

// longest returns where most free blocks follow one another, and how many.
func (b *blocks) longest() (from, n int) {
	for at := 1; at < len(b.taken); at++ {
		begin := at
		for at < len(b.taken) && !b.taken[at] {
			at++
		}
		if at-begin > n {
			from, n = begin, at-begin
		}
	}
	return from, n
}

// give makes a block free.
func (b *blocks) give(block int32) {
	if block == 0 || !b.taken[block] {
		panic(fmt.Sprintf("schedule: block %d is free already", block))
	}
	b.taken[block] = false
	b.free++
}
