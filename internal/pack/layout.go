package pack

// Shapes: B rows of T tokens, and R rows of branches with S keys, M tokens in all; N of them are trained.

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/grpo"
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

// Shapes returns the shapes of [MicroBatch.Tensors].
func (l Layout) Shapes() []shapes.Shape {
	ints := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
	list := []shapes.Shape{ints(l.Rows, l.Length)}
	for _, b := range l.Branches {
		if b.Rows > 0 {
			list = append(list, ints(b.Rows, b.Length), ints(b.Rows), ints(b.Rows, b.Keys))
		}
	}
	number := shapes.Make(dtypes.Float32, l.Trained)
	return append(list, ints(l.Trained, 1), ints(l.Trained, 1), number, number, number, number, number, number,
		ints(l.Trained, 1), shapes.Make(dtypes.Float32))
}

func (l Layout) check(seqs []grpo.Sequence, rows []Row) error {
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

// LogprobInputs are what the logprobs of trained tokens depend on besides parameters.
type LogprobInputs struct {
	IDs      *Node // [B, T]
	Branches []BranchInputs
	Position *Node // [N, 1] index in [M] of the hidden state that predicts the token
	Target   *Node // [N, 1] id of the token
}

// BranchInputs are a rectangle of branches.
type BranchInputs struct {
	IDs   *Node // [R, T]
	Start *Node // [R] position of the first token
	Keys  *Node // [R, S] the token at each position
}

// LogprobInputsOf names the first of [MicroBatch.Tensors] in a graph, and returns the others.
func LogprobInputsOf(tensors []*Node) (in LogprobInputs, others []*Node) {
	in.IDs, tensors = tensors[0], tensors[1:]
	for tensors[1].Rank() == 1 { // the starts of branches; a target has rank 2
		in.Branches = append(in.Branches, BranchInputs{IDs: tensors[0], Start: tensors[1], Keys: tensors[2]})
		tensors = tensors[3:]
	}
	in.Position, in.Target = tensors[0], tensors[1]
	return in, tensors[2:]
}

// LossInputsOf names the others of [MicroBatch.Tensors] in a graph; logprobs are [N], computed from the first ones.
func LossInputsOf(others []*Node, logprobs *Node) grpo.LossInputs {
	return grpo.LossInputs{
		New: logprobs, Old: others[0], Advantage: others[1], Weight: others[2], Mask: others[3], Behavior: others[4],
		Reference: others[5], Sequence: others[6], Denominator: others[7],
	}
}
