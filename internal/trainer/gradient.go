package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/model"
)

// Shape legend: B sequences, T tokens, D hidden, N trained tokens, V vocabulary.

// gradient returns the gradient of a mini-batch, added up over its micro-batches in order, and its metrics.
func (t *training) gradient(ctx context.Context, part []grpo.Sequence) ([][]float32, *grpo.Totals, error) {
	micro, err := t.microBatches(part, t.run.MicroBatch)
	if err != nil {
		return nil, nil, err
	}
	exec, err := t.gradientGraph(t.run.Loss)
	if err != nil {
		return nil, nil, err
	}
	shared := t.shared(t.on.params)
	denominator := float32(grpo.NumTrained(part))
	results := make([][]*tensors.Tensor, len(micro))
	err = t.each(ctx, len(micro), func(i int) (err error) {
		results[i], err = exec.Call(slices.Concat(shared, micro[i].Tensors(denominator))...)
		if err != nil {
			return fmt.Errorf("gradient: %w", err)
		}
		return nil
	})
	grads, totals := make([][]float32, len(t.on.params)), grpo.NewTotals(t.spec.Metrics)
	for i, out := range results {
		if err == nil {
			err = t.collect(grads, totals, micro[i], out)
		}
		finalize(out)
	}
	return grads, totals, err
}

// collect adds the outputs of the gradient graph for a micro-batch.
func (t *training) collect(
	grads [][]float32, totals *grpo.Totals, micro *grpo.MicroBatch, out []*tensors.Tensor,
) error {
	n := len(grads)
	if err := addGradients(grads, out[:n]); err != nil {
		return err
	}
	metrics, err := tensors.CopyFlatData[float32](out[n])
	if err != nil {
		return err
	}
	if err := totals.AddMicroBatch(metrics, micro.Tokens.NumReal); err != nil {
		return err
	}
	t.report.Computed += micro.Layout.Tokens()
	if t.spec.Sampled && t.report.Updates+t.report.Skipped == 0 {
		return t.report.compare(&micro.Tokens, out[n+1])
	}
	return nil
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

// addGradients adds the gradients of one micro-batch.
func addGradients(grads [][]float32, out []*tensors.Tensor) error {
	for i, x := range out {
		err := tensors.ConstFlatData(x, func(g []float32) {
			if grads[i] == nil {
				grads[i] = make([]float32, len(g))
			}
			for j, v := range g {
				grads[i][j] += v
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gradientGraph returns the graphs of a loss: gradients of the trained tensors, then the metrics as one vector, then
// the logprobs.
func (t *Trainer) gradientGraph(l grpo.Loss) (*Exec, error) {
	key := l.Spec().Key
	if e := t.gradients[key]; e != nil {
		return e, nil
	}
	frozen := len(t.target.frozen)
	e, err := NewExec(t.opts.Device, func(in []*Node) []*Node {
		trained, micro := in[frozen:len(in)-grpo.NumTensors], in[len(in)-grpo.NumTensors:]
		forward := t.target.forward(in[:frozen], trained)
		hidden, target := predicting(forward, grpo.LogprobInputsOf(micro))
		logprobs := forward.TokenLogProbs(hidden, target)
		inputs := grpo.LossInputsOf(micro, logprobs)
		if l.Spec().Entropy {
			all := forward.LogProbs(hidden) // [N, V]
			inputs.Entropy = Neg(ReduceSum(Mul(Exp(all), all), -1))
		}
		loss, metrics := grpo.BuildLoss(l, inputs)
		return append(Gradient(loss, trained...), metrics, logprobs)
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	e.SetMaxCache(-1) // bounded by the layouts of microBatches
	t.gradients[key] = e
	return e, nil
}

// tokenLogprobs builds the logprobs [N] of trained tokens. Logits are computed at their positions only.
func tokenLogprobs(f *model.Forward, in grpo.LogprobInputs) *Node {
	return f.TokenLogProbs(predicting(f, in))
}

// predicting builds the hidden states [N, D] that predict trained tokens, and returns their ids [N, 1].
func predicting(f *model.Forward, in grpo.LogprobInputs) (hidden, target *Node) {
	hidden, _ = f.Hidden(model.Input{Tokens: in.IDs})
	return Gather(Reshape(hidden, -1, f.Config.HiddenSize), in.Position), in.Target
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
		_ = x.FinalizeAll() // where the device fails, the error of the call or of a read is the one to report
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
