package grpo

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// Layout is the shape of a micro-batch: a padded rectangle with one sequence in a row, from position 0 on, and a padded
// list of the tokens trained in it. The packer fills it, the planner asks what it takes, and a graph is compiled for
// it: each layout costs a compilation, so there should be few.
type Layout struct {
	Rows    int // B: sequences
	Length  int // T: tokens that the model reads of a row, padding included
	Trained int // N: trained tokens, padding included
}

// Tokens is the number of tokens that the model computes, padding included.
func (l Layout) Tokens() int { return l.Rows * l.Length }

// Numbers of tensors of a micro-batch.
const (
	NumTensors        = 10 // see MicroBatch.Tensors
	NumLogprobTensors = 3  // those that logprobs depend on, which come first: ids, position, target
)

// Shapes returns the shapes of [MicroBatch.Tensors].
func (l Layout) Shapes() []shapes.Shape {
	index := shapes.Make(dtypes.Int32, l.Trained, 1)
	number := shapes.Make(dtypes.Float32, l.Trained)
	return []shapes.Shape{
		shapes.Make(dtypes.Int32, l.Rows, l.Length), index, index, number, number, number, number,
		number, number,
		shapes.Make(dtypes.Float32),
	}
}

// check reports sequences that do not fit.
func (l Layout) check(seqs []Sequence) error {
	if l.Rows <= 0 || l.Length <= 0 || l.Trained <= 0 {
		return fmt.Errorf("grpo: a layout of %d rows of %d tokens, %d of them trained: want at least one of each", l.Rows,
			l.Length, l.Trained)
	}
	if len(seqs) > l.Rows {
		return fmt.Errorf("grpo: %d sequences for %d rows", len(seqs), l.Rows)
	}
	if n := NumTrained(seqs); n > l.Trained {
		return fmt.Errorf("grpo: %d trained tokens for a list of %d", n, l.Trained)
	}
	for i := range seqs {
		if n := seqs[i].NumInputs(); n > l.Length {
			return fmt.Errorf("grpo: sequence %d needs %d tokens, rows have %d", i, n, l.Length)
		}
	}
	return nil
}
