package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/model"
)

// scoredRows limits the positions whose logits are in memory at once.
const scoredRows = 128

// Score returns the logprobs of all ids but the first, each given those before it, under the model with an adapter,
// which may be nil. Its error wraps [ErrNotFinite] if one of them is NaN or infinite. They equal the logprobs of
// sampling bit for bit on devices that compute each row independently of the others. Shape legend: T tokens, D hidden.
func Score(device compute.Backend, c *model.Config, params *model.Params, a *Adapter, ids []int32) ([]float32, error) {
	if err := checkScored(c, ids); err != nil {
		return nil, err
	}
	t := len(ids) - 1
	if t == 0 {
		return nil, nil
	}
	r := &runner{config: c, params: params}
	exec, err := NewExec(device, func(in []*Node) []*Node {
		f, rest := r.forward(a, in)
		tokens, target := rest[0], rest[1]
		hidden, _ := f.Hidden(model.Input{Tokens: tokens})
		hidden = Reshape(hidden, t, c.HiddenSize)
		var parts []*Node
		for first := 0; first < t; first += scoredRows {
			rows := AxisRange(first, min(first+scoredRows, t))
			parts = append(parts, f.TokenLogProbs(Slice(hidden, rows), Slice(target, rows)))
		}
		return []*Node{Concatenate(parts, 0)}
	})
	if err != nil {
		return nil, fmt.Errorf("engine: score: %w", err)
	}
	defer exec.Finalize()
	out, err := exec.Call(append(r.weights(a), tensors.FromFlatDataAndDimensions(ids[:t:t], 1, t),
		tensors.FromFlatDataAndDimensions(ids[1:], t, 1))...)
	if err != nil {
		return nil, fmt.Errorf("engine: score: %w", err)
	}
	defer finalize(out)
	logprobs, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return nil, fmt.Errorf("engine: score: %w", err)
	}
	for i, lp := range logprobs {
		if err := checkFinite(i, lp); err != nil {
			return nil, err
		}
	}
	return logprobs, nil
}

// checkScored refuses ids that cannot be scored.
func checkScored(c *model.Config, ids []int32) error {
	switch n := len(ids); {
	case n == 0:
		return errors.New("engine: there are no tokens to score")
	case n > c.MaxPositions:
		return fmt.Errorf("%w to be scored: %d tokens, the context has %d", ErrTooLong, n, c.MaxPositions)
	}
	return (&Request{Prompt: ids}).check(Options{Config: c, Context: c.MaxPositions + 1})
}

// Scored is what [ScoreTop] scores: ids under the model with an adapter, which may be nil.
type Scored struct {
	Device  compute.Backend
	Config  *model.Config
	Params  *model.Params
	Adapter *Adapter
	IDs     []int32
}

// ScoreTop returns, for each of the ids but the first, that token and then those of the n likeliest at its position
// that differ from it. Logprobs are those of [Score], bit for bit, and so are errors. Shape legend: T tokens, D hidden,
// C rows that are on the host at once, V vocabulary.
func ScoreTop(s Scored, n int) ([][]Candidate, error) {
	if err := checkScored(s.Config, s.IDs); err != nil {
		return nil, err
	}
	if len(s.IDs) == 1 {
		return nil, nil
	}
	out, err := s.top(n)
	if err != nil {
		return nil, fmt.Errorf("engine: score: %w", err)
	}
	return out, nil
}

// top computes the hidden states once, and the logprobs of some rows at a time.
func (s *Scored) top(n int) (out [][]Candidate, err error) {
	t, size, v := len(s.IDs)-1, s.Config.HiddenSize, s.Config.VocabSize
	c, r := min(t, scoredRows), &runner{config: s.Config, params: s.Params}
	exec, err := NewExec(s.Device, func(in []*Node) *Node { // [T, D]
		f, rest := r.forward(s.Adapter, in)
		hidden, _ := f.Hidden(model.Input{Tokens: rest[0]})
		return Reshape(hidden, t, size)
	})
	if err != nil {
		return nil, err
	}
	hidden, err := exec.Call1(append(r.weights(s.Adapter), tensors.FromFlatDataAndDimensions(s.IDs[:t:t], 1, t))...)
	exec.Finalize()
	if err != nil {
		return nil, err
	}
	defer func() { _ = hidden.FinalizeAll() }()            // nothing is lost
	exec, err = NewExec(s.Device, func(in []*Node) *Node { // [C, V], of the rows from a number on
		f, rest := r.forward(s.Adapter, in)
		return f.LogProbs(DynamicSlice(rest[0], []*Node{rest[1], ZerosLike(rest[1])}, []int{c, size}))
	})
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	for len(out) < t {
		first := min(len(out), t-c) // the last rows may be computed twice
		rows, err := exec.Call(append(r.weights(s.Adapter), hidden, int32(first))...)
		if err != nil {
			return nil, err
		}
		logprobs, err := tensors.CopyFlatData[float32](rows[0])
		finalize(rows)
		if err != nil {
			return nil, err
		}
		for i := len(out); i < first+c; i++ {
			row, id := logprobs[(i-first)*v:][:v], s.IDs[i+1]
			if err := checkFinite(i, row[id]); err != nil {
				return nil, err
			}
			others := slices.DeleteFunc(likeliest(row, n), func(c Candidate) bool { return c.ID == id })
			out = append(out, append([]Candidate{candidate(row, id)}, others...))
		}
	}
	return out, nil
}
