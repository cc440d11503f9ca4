// Package pack lays out sequences in micro-batches: padded rectangles, in which those that begin equally have what they
// share once. The trainer says how.
package pack

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goart-dev/art/grpo/credit"
)

// MicroBatch is what one graph computes: sequences in a layout. Rows are left-aligned; with causal attention nothing
// depends on the padding after them, which is of id 0.
type MicroBatch struct {
	Layout
	IDs    []int32    // [M] of all rectangles, each row-major
	Starts []int32    // of the rows of all branches: the position of their first token
	Keys   []int32    // of the rows of all branches: the token of IDs at each position
	Tokens TokenBatch // [N]
	// Placed are the rows that have tokens: those of a rectangle lie in it in this order.
	Placed []Row
}

// TokenBatch lists trained tokens, sequence by sequence, then padding. A token of weight 0 is like padding for a loss
// and its metrics; only its logprob is computed.
type TokenBatch struct {
	Position  []int32   // [N] index in [M] of the token before, whose hidden state predicts this one
	Target    []int32   // [N] id of the token
	Old       []float32 // [N] see Sequence; so are the next three
	Advantage []float32 // [N] with its shaping
	Behavior  []float32 // [N]
	Reference []float32 // [N] 0 where there is none
	Weight    []float32 // [N]
	Mask      []float32 // [N] 1 for a token in the loss, 0 for one of weight 0 and for padding
	Logprob   []float32 // [N] its logprob when it was sampled; no loss depends on it
	Staleness []int     // [N] see Sequence; no loss depends on it
	Sequence  []int32   // [N] index of its sequence
	NumReal   int       // tokens that are not padding; they come first
	NumInLoss int       // tokens of Mask 1
}

// Row is a part of a sequence that lies in a row of a layout: the tokens [Start, End) that the model reads of it. Those
// before Start are where those of the sequence From are, which begins equally, and whose row comes earlier in a list.
type Row struct {
	Sequence, From, Start, End int
	Rectangle                  int // 0 for the first one, 1 for the first branches
}

// Sequences lays out sequences, one in each row. Every trained token is listed, and has everything before it in its
// row. What follows the last trained token of a sequence is left out.
func Sequences(seqs []credit.Sequence, layout Layout) (*MicroBatch, error) {
	rows := make([]Row, len(seqs))
	for i := range seqs {
		rows[i] = Row{Sequence: i, End: seqs[i].NumInputs()}
	}
	return Rows(seqs, rows, layout)
}

// Rows lays out sequences that share what they begin with. The last row of each sequence ends with what the model
// reads of it; one without tokens of its own takes no row of the layout.
func Rows(seqs []credit.Sequence, rows []Row, layout Layout) (*MicroBatch, error) {
	if err := errors.Join(credit.ValidateAll(seqs), layout.check(seqs, rows)); err != nil {
		return nil, err
	}
	m := &MicroBatch{Layout: layout, IDs: make([]int32, layout.Tokens())}
	for _, b := range layout.Branches {
		m.Starts = append(m.Starts, make([]int32, b.Rows)...)
		m.Keys = append(m.Keys, make([]int32, b.Rows*b.Keys)...)
	}
	at := make([][]int32, len(seqs)) // of each sequence, where its tokens are
	var used [1 + MaxBranches]int
	for _, r := range rows {
		ids, path := seqs[r.Sequence].IDs, at[r.Sequence]
		if r.Start > 0 {
			other := seqs[r.From].IDs
			if len(at[r.From]) < r.Start || len(ids) < r.Start || !slices.Equal(ids[:r.Start], other[:r.Start]) {
				return nil, fmt.Errorf("pack: sequences %d and %d do not share %d tokens", r.Sequence, r.From, r.Start)
			}
			path = at[r.From][:r.Start:r.Start]
		}
		if r.Start < r.End {
			path = m.place(r, used[r.Rectangle], ids[r.Start:r.End], path)
			used[r.Rectangle]++
		}
		at[r.Sequence] = path
	}
	for i := range seqs {
		if got, want := len(at[i]), seqs[i].NumInputs(); got < want {
			return nil, fmt.Errorf("pack: rows have %d tokens of sequence %d, the model reads %d", got, i, want)
		}
		m.Tokens.add(&seqs[i], i, at[i])
	}
	m.Tokens.pad(layout.Trained)
	return m, nil
}

// place puts the ids of r in the row of that number of its rectangle. path says where the tokens before are, and its
// result where all up to the end are.
func (m *MicroBatch) place(r Row, number int, ids, path []int32) []int32 {
	m.Placed = append(m.Placed, r)
	first := 0 // index of the first token
	for i := range r.Rectangle {
		rows, length, _ := m.rectangle(i)
		first += rows * length
	}
	_, length, _ := m.rectangle(r.Rectangle)
	first += number * length
	copy(m.IDs[first:], ids)
	for i := range ids {
		path = append(path, int32(first+i))
	}
	if r.Rectangle > 0 {
		before, keys := 0, 0
		for _, b := range m.Branches[:r.Rectangle-1] {
			before, keys = before+b.Rows, keys+b.Rows*b.Keys
		}
		m.Starts[before+number] = int32(r.Start)
		copy(m.Keys[keys+number*m.Branches[r.Rectangle-1].Keys:], path)
	}
	return path
}

// add appends the trained tokens of a sequence, the i-th, whose tokens are at the given indices.
func (t *TokenBatch) add(seq *credit.Sequence, i int, indices []int32) {
	for j, trained := range seq.Trained {
		if !trained {
			continue
		}
		t.Position = append(t.Position, indices[j-1])
		t.Target = append(t.Target, at(seq.Targets, j, seq.IDs[j]))
		t.Logprob = append(t.Logprob, seq.Logprobs[j])
		t.Old = append(t.Old, at(seq.Old, j, seq.Logprobs[j]))
		t.Behavior = append(t.Behavior, at(seq.Behavior, j, seq.Logprobs[j]))
		t.Reference = append(t.Reference, at(seq.Reference, j, 0))
		t.Advantage = append(t.Advantage, float32(seq.Advantage+at(seq.Shaping, j, 0)))
		weight, mask := float32(seq.Weight*at(seq.Weights, j, 1)), float32(0)
		if weight != 0 {
			mask = 1
			t.NumInLoss++
		}
		t.Weight, t.Mask = append(t.Weight, weight), append(t.Mask, mask)
		t.Staleness = append(t.Staleness, at(seq.Staleness, j, 0))
		t.Sequence = append(t.Sequence, int32(i))
		t.NumReal++
	}
}

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
	t.Staleness, t.Sequence = append(t.Staleness, make([]int, n-t.NumReal)...), append(t.Sequence, ints...)
}
