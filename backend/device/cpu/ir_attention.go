package cpu

import "slices"

// attention is a matmul, a loop over its rows, and the matmul of what that makes with another matrix, or the first two
// alone. It goes through all of them a tile of rows at a time, so that the rows in between never exist all at once.
// Attention is one: queries times keys, softmax, times values. So is the log-softmax of which a few numbers are kept.
//
// Where a mask replaces what the first matmul gave, that is not computed, for whole columns of a tile; and the second
// matmul ends with the last column of a tile that is not zero. So causal attention computes half, and one with a cache
// what the cache holds. The bits are those of the operations one by one: multiply-adds of zeros change nothing.
type attention struct {
	first  *matmul
	loop   *loop
	second *matmul
	mask   *view     // of the numbers of first that are used; nil for all
	rows   int       // of a member of the batch
	width  int       // of a row
	tile   int       // rows that are computed at once
	inner  *tensor   // what second reads
	wide   bool      // all workers share a tile
	shared []*tensor // its memory then: it is too large to be kept for the next run in any other way
	others []view    // what the loop reads from elsewhere
}

// reads are all views that are read from elsewhere.
func (k *attention) reads() []view {
	list := append(slices.Clone(k.others), k.first.reads()...)
	if k.second != nil {
		list = append(list, k.second.right()...)
	}
	return list
}

// writes are the results that others read.
func (k *attention) writes() []*tensor {
	list := slices.DeleteFunc(slices.Clone(k.loop.results), func(t *tensor) bool { return t.virtual })
	if k.second != nil {
		list = append(list, k.second.out.of)
	}
	return list
}

// tiles is how many tiles exist at once.
func (k *attention) tiles() int {
	if k.second != nil && k.inner.virtual {
		return k.inner.tile
	}
	return 1
}

// tileBytes is the size of a tile.
func (k *attention) tileBytes() int { return 4 * k.tile * k.width }
