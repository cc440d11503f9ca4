package trainer

import (
	"context"
	"fmt"
	"math"
	"sync"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/model"
)

// Shape legend: B sequences, T tokens, D hidden, N trained tokens, V vocabulary.

// objective is what gradients are taken of. It is comparable: equal objectives share graphs.
type objective struct {
	supervised bool
	loss       grpo.Loss
	lo, hi     float64 // bounds of the importance ratio
}

func (r *Run) objective() objective {
	if r.Supervised {
		return objective{supervised: true}
	}
	lo, hi := r.Loss.Bounds()
	return objective{loss: r.Loss.Loss, lo: lo, hi: hi}
}

// gradient returns the gradient of a mini-batch, added up over its micro-batches in order.
func (t *Trainer) gradient(ctx context.Context, trained []*tensors.Tensor, part []grpo.Sequence, run *Run, report *Report) ([][]float32, grpo.LossSums, error) {
	micro, err := t.pack(part, run.MicroBatch)
	if err != nil {
		return nil, grpo.LossSums{}, err
	}
	exec, err := t.gradientGraph(run.objective())
	if err != nil {
		return nil, grpo.LossSums{}, err
	}
	shared := t.shared(trained)
	denominator := float32(grpo.NumTrained(part))
	results := make([][]*tensors.Tensor, len(micro))
	err = t.each(ctx, len(micro), func(i int) (err error) {
		results[i], err = exec.Call(append(shared[:len(shared):len(shared)], microInputs(&micro[i], denominator)...)...)
		if err != nil {
			return fmt.Errorf("gradient: %w", err)
		}
		return nil
	})
	first := report.Updates+report.Skipped == 0
	var grads [][]float32
	var sums grpo.LossSums
	for i, out := range results {
		if err == nil {
			report.Computed += micro[i].Rows * micro[i].Length
			err = addUp(&grads, &sums, out[:len(out)-1])
		}
		if err == nil && first && !run.Supervised {
			err = report.compare(&micro[i].Tokens, out[len(out)-1])
		}
		finalize(out)
	}
	return grads, sums, err
}

// each calls f for 0 to n-1, on as many goroutines as there are workers, until one fails or ctx is done.
func (t *Trainer) each(ctx context.Context, n int, f func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(t.opts.Workers, n) {
		wg.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					cancel(fmt.Errorf("trainer: %w", err))
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// addUp adds the gradients and metrics of one micro-batch.
func addUp(grads *[][]float32, sums *grpo.LossSums, out []*tensors.Tensor) error {
	n := len(out) - 1
	if *grads == nil {
		*grads = make([][]float32, n)
	}
	for i := range n {
		err := tensors.ConstFlatData(out[i], func(g []float32) {
			if (*grads)[i] == nil {
				(*grads)[i] = make([]float32, len(g))
			}
			for j, v := range g {
				(*grads)[i][j] += v
			}
		})
		if err != nil {
			return err
		}
	}
	values, err := tensors.CopyFlatData[float32](out[n])
	if err != nil {
		return err
	}
	more, err := grpo.ReadLossSums(values)
	sums.Add(more)
	return err
}

func microInputs(m *grpo.MicroBatch, denominator float32) []any {
	b := &m.Tokens
	n := len(b.Target)
	return []any{
		tensors.FromFlatDataAndDimensions(m.IDs, m.Rows, m.Length),
		tensors.FromFlatDataAndDimensions(b.Position, n, 1),
		tensors.FromFlatDataAndDimensions(b.Target, n, 1),
		tensors.FromFlatDataAndDimensions(b.Old, n),
		tensors.FromFlatDataAndDimensions(b.Advantage, n),
		tensors.FromFlatDataAndDimensions(b.Weight, n),
		tensors.FromFlatDataAndDimensions(b.Mask, n),
		tensors.FromScalar(denominator),
	}
}

// gradientGraph returns the graphs of an objective: gradients of the trained tensors, then the metrics as one vector,
// then the logprobs.
func (t *Trainer) gradientGraph(o objective) (*Exec, error) {
	if e := t.gradients[o]; e != nil {
		return e, nil
	}
	frozen := len(t.target.frozen)
	e, err := NewExec(t.opts.Device, func(in []*Node) []*Node {
		trained, micro := in[frozen:len(in)-8], in[len(in)-8:]
		f := t.target.forward(in[:frozen], trained)
		logprobs := tokenLogprobs(f, micro[0], micro[1], micro[2])
		loss, metrics := o.build(grpo.LossInputs{
			New: logprobs, Old: micro[3], Advantage: micro[4], Weight: micro[5], Mask: micro[6], Denominator: micro[7],
		})
		return append(Gradient(loss, trained...), metrics.Vector(), logprobs)
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	e.SetMaxCache(-1) // bounded by the shapes that pack makes
	t.gradients[o] = e
	return e, nil
}

func (o objective) build(in grpo.LossInputs) (*Node, grpo.LossMetrics) {
	if o.supervised {
		in.Old = StopGradient(in.New)
		in.Advantage = OnesLike(in.New)
		return grpo.PolicyLoss(grpo.LossConfig{Loss: grpo.LossCISPO}, in)
	}
	epsilon, high := 1-o.lo, o.hi-1
	return grpo.PolicyLoss(grpo.LossConfig{Loss: o.loss, Epsilon: &epsilon, EpsilonHigh: &high}, in)
}

// tokenLogprobs builds the logprobs [N] of target [N, 1] after position [N, 1], a flat index into ids [B, T]. Only
// hidden states at those positions meet the vocabulary.
func tokenLogprobs(f *model.Forward, ids, position, target *Node) *Node {
	hidden, _ := f.Hidden(model.Input{Tokens: ids})
	hidden = Gather(Reshape(hidden, -1, f.Config.HiddenSize), position) // [N, D]
	return f.TokenLogProbs(hidden, target)
}

// updateGraph returns the graph of an update of n tensors: parameters, first and second moments, norm.
func (t *Trainer) updateGraph(cfg grpo.AdamW, n int) (*Exec, error) {
	if e := t.updates[cfg]; e != nil {
		return e, nil
	}
	e, err := NewExec(t.opts.Device, func(in []*Node) []*Node {
		state := grpo.AdamWState{Params: in[:n], M: in[n : 2*n], V: in[2*n : 3*n]}
		next, norm := cfg.Step(state, in[3*n:4*n], in[4*n])
		return append(next.Nodes(), norm)
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	t.updates[cfg] = e
	return e, nil
}

func finalize(list []*tensors.Tensor) {
	for _, x := range list {
		_ = x.FinalizeAll() // on a device that fails, the error of a run or a read is the one to tell
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
