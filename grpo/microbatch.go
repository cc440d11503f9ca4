package grpo

import (
	"errors"

	"github.com/gomlx/gomlx/core/tensors"
)

// MicroBatch is what one graph computes: sequences in a layout. Rows are left-aligned; with causal attention nothing
// depends on the padding after them, which is of id 0.
type MicroBatch struct {
	Layout
	IDs    []int32    // [B*T] row-major
	Tokens TokenBatch // [N]
}

// TokenBatch lists trained tokens, row by row in the order of the sequence, then padding of Mask 0.
type TokenBatch struct {
	Position  []int32   // [N] index in [B*T] of the token before, whose hidden state predicts this one
	Target    []int32   // [N] id of the token
	Old       []float32 // [N] see Sequence; so are the next three
	Advantage []float32 // [N] with its shaping
	Behavior  []float32 // [N]
	Reference []float32 // [N] 0 where there is none
	Weight    []float32 // [N]
	Mask      []float32 // [N] 1 for a token, 0 for padding
	Logprob   []float32 // [N] its logprob when it was sampled; no loss depends on it
	Staleness []int     // [N] see Sequence; no loss depends on it
	NumReal   int       // tokens that are not padding; they come first
}

// Pack lays out sequences, one in each row. Every trained token is listed, and has everything before it in its row.
// What follows the last trained token of a sequence is left out.
func Pack(seqs []Sequence, layout Layout) (*MicroBatch, error) {
	if err := errors.Join(validateAll(seqs), layout.check(seqs)); err != nil {
		return nil, err
	}
	m := &MicroBatch{Layout: layout, IDs: make([]int32, layout.Tokens())}
	for row := range seqs {
		seq, start := &seqs[row], row*layout.Length
		copy(m.IDs[start:], seq.IDs[:seq.NumInputs()])
		m.Tokens.add(seq, start)
	}
	m.Tokens.pad(layout.Trained)
	return m, nil
}

// Tensors returns the inputs of a graph: ids, position, target, old, advantage, weight, mask, behavior, reference and
// denominator, the number of trained tokens that one optimizer step sees. [Layout.Shapes] has their shapes,
// [LossInputsOf] names them in a graph.
func (m *MicroBatch) Tensors(denominator float32) []any {
	b, n := &m.Tokens, m.Trained
	return []any{
		tensors.FromFlatDataAndDimensions(m.IDs, m.Rows, m.Length),
		tensors.FromFlatDataAndDimensions(b.Position, n, 1),
		tensors.FromFlatDataAndDimensions(b.Target, n, 1),
		tensors.FromFlatDataAndDimensions(b.Old, n),
		tensors.FromFlatDataAndDimensions(b.Advantage, n),
		tensors.FromFlatDataAndDimensions(b.Weight, n),
		tensors.FromFlatDataAndDimensions(b.Mask, n),
		tensors.FromFlatDataAndDimensions(b.Behavior, n),
		tensors.FromFlatDataAndDimensions(b.Reference, n),
		tensors.FromScalar(denominator),
	}
}

// add appends the trained tokens of a sequence whose first token has index start.
func (t *TokenBatch) add(seq *Sequence, start int) {
	for i, trained := range seq.Trained {
		if !trained {
			continue
		}
		t.Position = append(t.Position, int32(start+i-1))
		t.Target = append(t.Target, seq.IDs[i])
		t.Logprob = append(t.Logprob, seq.Logprobs[i])
		t.Old = append(t.Old, at(seq.Old, i, seq.Logprobs[i]))
		t.Behavior = append(t.Behavior, at(seq.Behavior, i, seq.Logprobs[i]))
		t.Reference = append(t.Reference, at(seq.Reference, i, 0))
		t.Advantage = append(t.Advantage, float32(seq.Advantage+at(seq.Shaping, i, 0)))
		t.Weight = append(t.Weight, float32(seq.Weight))
		t.Mask = append(t.Mask, 1)
		t.Staleness = append(t.Staleness, at(seq.Staleness, i, 0))
		t.NumReal++
	}
}

// at returns list[i], or missing when there is no list.
func at[T any](list []T, i int, missing T) T {
	if list == nil {
		return missing
	}
	return list[i]
}

// pad brings every list to length n with zeros.
func (t *TokenBatch) pad(n int) {
	ints, floats := make([]int32, n-t.NumReal), make([]float32, n-t.NumReal)
	t.Position, t.Target = append(t.Position, ints...), append(t.Target, ints...)
	t.Behavior, t.Reference = append(t.Behavior, floats...), append(t.Reference, floats...)
	t.Logprob = append(t.Logprob, floats...)
	t.Old, t.Advantage = append(t.Old, floats...), append(t.Advantage, floats...)
	t.Weight, t.Mask = append(t.Weight, floats...), append(t.Mask, floats...)
	t.Staleness = append(t.Staleness, make([]int, n-t.NumReal)...)
}
