package pack

import (
	"fmt"

	"github.com/goart-dev/art/grpo/credit"
)

// Layout is the shape of a micro-batch: padded rectangles, and a padded list of the tokens trained in them. In the
// first one each row begins with the first token of a sequence; rows of [Branches] begin where a sequence leaves what
// it shares with others. The packer fills it, the planner asks what it takes, and a graph is compiled for it: each
// layout costs a compilation, so there should be few.
type Layout struct {
	Rows    int // B: sequences, or what several of them have in common
	Length  int // T: tokens that the model reads of a row, padding included
	Trained int // N: trained tokens, padding included
	// Branches are further rectangles; those without rows are left out.
	Branches [MaxBranches]Branches
}

// MaxBranches is the number of rectangles of branches of a layout. Two hold branches of different lengths with less
// padding than one.
const MaxBranches = 2

// Branches is the shape of a rectangle of branches.
type Branches struct {
	Rows   int // R
	Length int // tokens of a row, padding included
	Keys   int // S: positions that a row attends to, those of what it shares included
}

// Tokens is the number of tokens that the model computes, padding included.
func (l Layout) Tokens() int {
	n := l.Rows * l.Length
	for _, b := range l.Branches {
		n += b.Rows * b.Length
	}
	return n
}

func (l Layout) check(seqs []credit.Sequence, rows []Row) error {
	if l.Rows <= 0 || l.Length <= 0 || l.Trained <= 0 {
		return fmt.Errorf("pack: a layout of %d rows of %d tokens, %d of them trained: want at least one of each", l.Rows,
			l.Length, l.Trained)
	}
	if n := credit.NumTrained(seqs); n > l.Trained {
		return fmt.Errorf("pack: %d trained tokens for a list of %d", n, l.Trained)
	}
	counts := map[int]int{}
	for _, r := range rows {
		if r.Sequence < 0 || r.Sequence >= len(seqs) || r.Start < 0 || r.End < r.Start || r.Rectangle < 0 ||
			r.Rectangle > MaxBranches || r.Start > 0 && (r.From < 0 || r.From >= len(seqs)) {
			return fmt.Errorf("pack: row %+v of %d sequences", r, len(seqs))
		}
		if r.Start == r.End {
			continue
		}
		counts[r.Rectangle]++
		have, length, keys := l.rectangle(r.Rectangle)
		if counts[r.Rectangle] > have {
			return fmt.Errorf("pack: %d sequences for %d rows", counts[r.Rectangle], have)
		}
		if n := r.End - r.Start; n > length || r.End > keys || r.Rectangle == 0 && r.Start > 0 {
			return fmt.Errorf("pack: sequence %d needs %d tokens, rows have %d", r.Sequence, n, length)
		}
	}
	return nil
}

// rectangle returns the rows, tokens and keys of one: of sequences for 0, else of branches.
func (l Layout) rectangle(i int) (rows, length, keys int) {
	if i == 0 {
		return l.Rows, l.Length, l.Length
	}
	b := l.Branches[i-1]
	return b.Rows, b.Length, b.Keys
}
