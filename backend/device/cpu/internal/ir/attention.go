package ir

import "slices"

// Attention is a matmul, a loop over its rows, and the matmul of what that makes with another matrix, or the first two
// alone. It goes through all of them a tile of rows at a time, so that the rows in between never exist all at once.
// Attention is one: queries times keys, softmax, times values. So is the log-softmax of which a few numbers are kept.
//
// Where a mask replaces what the first matmul gave, that is not computed, for whole columns of a tile; and the second
// matmul ends with the last column of a tile that is not zero. So causal attention computes half, and one with a cache
// what the cache holds. The bits are those of the operations one by one: multiply-adds of zeros change nothing.
type Attention struct {
	First  *Matmul
	Loop   *Loop
	Second *Matmul
	Mask   *View     // of the numbers of first that are used; nil for all
	Rows   int       // of a member of the batch
	Width  int       // of a row
	Tile   int       // rows that are computed at once
	Joined int       // members of the batch that may be: those whose operands begin with the same pages
	Inner  *Tensor   // what second reads
	Wide   bool      // all workers share a tile
	Shared []*Tensor // its memory then: it is too large to be kept for the next run in any other way
	Others []View    // what the loop reads from elsewhere
}

// Reads are all views that are read from elsewhere.
func (k *Attention) Reads() []View {
	list := append(slices.Clone(k.Others), k.First.Reads()...)
	if k.Second != nil {
		list = append(list, k.Second.right()...)
	}
	return list
}

// Writes are the results that others read.
func (k *Attention) Writes() []*Tensor {
	list := slices.DeleteFunc(slices.Clone(k.Loop.Results), func(t *Tensor) bool { return t.Virtual })
	if k.Second != nil {
		list = append(list, k.Second.Out.Of)
	}
	return list
}

// Tiles is how many tiles exist at once.
func (k *Attention) Tiles() int {
	if k.Second != nil && k.Inner.Virtual {
		return k.Inner.Tile
	}
	return 1
}

// TileBytes is the size of a tile.
func (k *Attention) TileBytes() int { return 4 * k.Tile * k.Width * max(1, k.Joined) }

// Paged reports whether both matmuls read operands that have several pages.
func (k *Attention) Paged() bool {
	return k.Second != nil && k.First.Gathered != nil && k.Second.Gathered != nil &&
		k.First.Gathered.Each < k.Width && k.Second.Gathered.Each == k.First.Gathered.Each
}
