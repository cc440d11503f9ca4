package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// Forward computes logprobs and changes nothing.
func (b *Backend) Forward(
	ctx context.Context, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (*loop.ForwardResult, error) {
	return b.lockedPass(ctx, m, &pass{"forward", data, loss, config, true})
}

// ForwardBackward adds up gradients at the service. Data beyond the limits of one request are sent in several.
func (b *Backend) ForwardBackward(
	ctx context.Context, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (*loop.ForwardResult, error) {
	return b.lockedPass(ctx, m, &pass{"forward backward", data, loss, config, false})
}

// ownLoop begins an operation of the user's own loop, which goes on from the newest step after a training call that was
// interrupted. e.training is held.
func (b *Backend) ownLoop(ctx context.Context, e *entry, m *art.Model) error {
	if e.learning && (e.changed || e.lost != nil) {
		if err := b.restart(ctx, e, m.Options()); err != nil {
			return err
		}
	}
	e.learning = false
	return nil
}

// pass is a forward pass, with gradients or without.
type pass struct {
	op          string
	data        []loop.Datum
	loss        credit.Loss
	config      loop.LossConfig
	forwardOnly bool
}

func (b *Backend) lockedPass(ctx context.Context, m *art.Model, call *pass) (*loop.ForwardResult, error) {
	e, err := b.trainable(call.op, m)
	if err != nil {
		return nil, err
	}
	e.training.Lock()
	defer e.training.Unlock()
	if err := b.ownLoop(ctx, e, m); err != nil {
		return nil, err
	}
	return b.runPass(ctx, e, call)
}

// runPass runs a forward pass in as many requests as the limits of the service ask for. e.training is held.
func (b *Backend) runPass(ctx context.Context, e *entry, call *pass) (*loop.ForwardResult, error) {
	data := make([]tinkerwire.Datum, len(call.data))
	for i := range call.data {
		var err error
		if data[i], err = convert(&call.data[i], call.loss, &b.limits); err != nil {
			return nil, &art.Error{
				Op: call.op, Err: fmt.Errorf("%w: datum %d: %w", art.ErrUnsupported, i, err),
				Hint: "use another loss, or other weights",
			}
		}
	}
	out := &loop.ForwardResult{Metrics: map[string]float64{}}
	for from := 0; from == 0 || from < len(data); {
		to := b.limits.chunk(data, from)
		req := &tinkerwire.ForwardRequest{
			Loss: string(call.loss), Config: call.config, ForwardOnly: call.forwardOnly, Data: data[from:to],
		}
		part, err := b.request(ctx, e, call, req, call.data[from:to])
		if err != nil && from > 0 && !call.forwardOnly && e.lost == nil {
			e.lost = err // gradients of a part of the data were added
		}
		if err != nil {
			return nil, err
		}
		out.Loss += part.Loss
		out.Logprobs = append(out.Logprobs, part.Logprobs...)
		mergeMetrics(out.Metrics, part.Metrics, to-from, to)
		from = max(to, 1)
	}
	if gap, ok := logprobGap(call.data, out.Logprobs); ok {
		out.Metrics["train/logprob_gap_max"] = gap
	}
	return out, nil
}

// request runs a forward pass over the data of one request.
func (b *Backend) request(
	ctx context.Context, e *entry, call *pass, req *tinkerwire.ForwardRequest, data []loop.Datum,
) (out *loop.ForwardResult, err error) {
	err = e.ordered(!call.forwardOnly, func(seq int) error {
		req.ModelID, req.SeqID = e.model, seq
		path, body := protoPath+"forward_backward", []byte(nil)
		switch {
		case !b.opts.JSON:
			body = req.Proto()
		case req.ForwardOnly:
			path, body = "forward", encode(req)
		default:
			path, body = "forward_backward", encode(req)
		}
		a, err := b.operation(ctx, path, body)
		if err != nil {
			return err
		}
		e.changed = e.changed || !call.forwardOnly
		out, err = b.readPass(call, a, data)
		return err
	})
	return out, err
}

// convert writes a datum in the terms of the protocol, which has no positions without a target, and weights for
// cross-entropy only, unless the service says otherwise.
func convert(d *loop.Datum, loss credit.Loss, service *limits) (tinkerwire.Datum, error) {
	targets, weights, gaps := targetsOf(d, service)
	weighted := d.Weights != nil
	shape := []int64{int64(len(d.Input))}
	if d.K > 1 {
		shape = append(shape, int64(d.K))
	}
	out := tinkerwire.Datum{Input: tinkerwire.NewInput(d.Input), Inputs: map[string]tinkerwire.Tensor{
		"target_tokens": tinkerwire.NewInts(targets, shape...),
	}}
	if loss == credit.CrossEntropy {
		out.Inputs["weights"] = tinkerwire.NewFloats(weights, shape...)
		return out, nil
	}
	if service.PolicyWeights && (gaps || weighted) {
		out.Inputs["weights"] = tinkerwire.NewFloats(weights, shape...)
	} else if loss == credit.DRO && (gaps || weighted) {
		return out, errors.New("services apply the penalty of dro to every position, so there are no weights and no NoTarget")
	}
	advantages, logprobs := make([]float32, len(targets)), make([]float32, len(targets))
	for i, w := range weights {
		if service.PolicyWeights {
			w = 1 // it is sent
		}
		if w < 0 {
			return out, fmt.Errorf("the weight %v at %d is negative; the service has no weights for this loss", w, i)
		}
		if w != 0 && d.Targets[i] != loop.NoTarget {
			advantages[i] = d.Advantages[i] * w
		}
		if d.Targets[i] != loop.NoTarget {
			logprobs[i] = d.Logprobs[i]
		}
	}
	out.Inputs["advantages"] = tinkerwire.NewFloats(advantages, shape...)
	out.Inputs["logprobs"] = tinkerwire.NewFloats(logprobs, shape...)
	return out, nil
}

// targetsOf returns the targets of a datum on the wire and their weights, and whether positions without a target have
// got one.
func targetsOf(d *loop.Datum, service *limits) (targets []int64, weights []float32, gaps bool) {
	targets, weights = make([]int64, len(d.Targets)), make([]float32, len(d.Targets))
	for i, id := range d.Targets {
		targets[i], weights[i] = int64(id), 1
		if d.Weights != nil {
			weights[i] = d.Weights[i]
		}
		if id == loop.NoTarget {
			weights[i] = 0
			if !service.NoTarget {
				targets[i], gaps = 0, true
			}
		}
	}
	return targets, weights, gaps
}

// readPass reads the result of a forward pass, and checks that it is one of the data.
func (b *Backend) readPass(call *pass, a *answer, data []loop.Datum) (*loop.ForwardResult, error) {
	op := call.op
	output := &tinkerwire.ForwardOutput{}
	var err error
	if a.proto() {
		output, err = tinkerwire.ParseForwardOutput(a.data)
	} else {
		err = json.Unmarshal(a.data, output)
	}
	if err != nil {
		return nil, b.broken(op, err)
	}
	if len(output.Outputs) != len(data) {
		return nil, b.broken(op, fmt.Errorf("the result is of %d data, want %d", len(output.Outputs), len(data)))
	}
	out := &loop.ForwardResult{Metrics: map[string]float64{}}
	for i := range data {
		list := output.Outputs[i]["logprobs"].Floats
		if len(list) != len(data[i].Targets) {
			return nil, b.broken(op, fmt.Errorf("datum %d has %d logprobs, want %d", i, len(list), len(data[i].Targets)))
		}
		for j, x := range list {
			if data[i].Targets[j] == loop.NoTarget {
				list[j] = 0
			} else if x != x {
				return nil, b.broken(op, fmt.Errorf("datum %d: %w", i, errNaN))
			}
		}
		out.Logprobs = append(out.Logprobs, list)
	}
	for name, x := range output.Metrics {
		out.Metrics["tinker/"+name] = x
	}
	if out.Loss, err = lossOf(output, data, call); err != nil {
		return nil, b.broken(op, err)
	}
	return out, nil
}

// lossOf is the sum that an output is of: a metric or, of SkyRL's JAX backend, the elements.
func lossOf(output *tinkerwire.ForwardOutput, data []loop.Datum, call *pass) (sum float64, err error) {
	for _, name := range []string{"loss:sum", "total_loss:sum"} {
		if sum, ok := output.Metrics[name]; ok {
			return sum, nil
		}
	}
	for i := range data {
		elements, ok := output.Outputs[i]["elementwise_loss"]
		if !ok {
			return 0, fmt.Errorf("the result of %s has no metric loss:sum", call.loss)
		}
		if !call.forwardOnly && call.loss == credit.CrossEntropy && negative(&data[i]) {
			return 0, errNegative
		}
		for _, x := range elements.Floats {
			sum += float64(x)
		}
	}
	return sum, nil
}

// errNegative is the error of weights that SkyRL's JAX backend takes and applies wrongly.
var errNegative = errors.New("a datum of cross_entropy has weights that add up to less than 0, or 0, by which the " +
	"service would divide its loss")

// negative reports whether a datum has weights, and no positive sum of them.
func negative(d *loop.Datum) bool {
	sum, some := 0.0, false
	for i, w := range d.Weights {
		if d.Targets[i] != loop.NoTarget {
			sum, some = sum+float64(w), some || w != 0
		}
	}
	return some && sum <= 0
}

// logprobGap is the largest difference between the logprobs of what was sampled and those that training computes.
// Before an update it is the difference between the service's sampler and trainer.
func logprobGap(data []loop.Datum, logprobs [][]float32) (gap float64, ok bool) {
	for i := range data {
		for j, a := range data[i].Advantages {
			if a != 0 && data[i].Targets[j] != loop.NoTarget {
				gap, ok = max(gap, math.Abs(float64(logprobs[i][j]-data[i].Logprobs[j]))), true
			}
		}
	}
	return gap, ok
}

// OptimStep makes an update at the service.
func (b *Backend) OptimStep(ctx context.Context, m *art.Model, adamw loop.AdamW) (*loop.OptimResult, error) {
	e, err := b.trainable("optim step", m)
	if err != nil {
		return nil, err
	}
	e.training.Lock()
	defer e.training.Unlock()
	if err := b.ownLoop(ctx, e, m); err != nil {
		return nil, err
	}
	return b.optimStep(ctx, e, adamw)
}

// optimStep is OptimStep. e.training is held.
func (b *Backend) optimStep(ctx context.Context, e *entry, adamw loop.AdamW) (*loop.OptimResult, error) {
	var out result
	err := e.ordered(true, func(seq int) (err error) {
		adam := &tinkerwire.Adam{
			LearningRate: &adamw.LearningRate, Beta1: &adamw.Beta1, Beta2: &adamw.Beta2, Eps: &adamw.Eps,
			WeightDecay: &adamw.WeightDecay, GradClipNorm: &adamw.GradClipNorm,
		}
		out, err = b.small(ctx, "optim_step", request{ModelID: e.model, SeqID: seq, Type: "optim_step", Adam: adam})
		return err
	})
	if err != nil {
		return nil, err
	}
	e.changed = true
	norm := math.NaN() // not told
	for _, name := range []string{"grad_norm", "skyrl.ai/grad_norm"} {
		if x, ok := out.Metrics[name]; ok {
			norm = x
		}
	}
	skipped, updates := out.Metrics["skipped"] > 0, int(out.Metrics["updates"])
	return &loop.OptimResult{GradNorm: norm, Skipped: skipped, Updates: updates}, nil
}

// SaveWeights saves the training state at the service. Without optimizer they are weights for sampling.
func (b *Backend) SaveWeights(ctx context.Context, m *art.Model, name string, optimizer bool) (string, error) {
	e, err := b.trainable("save weights", m)
	if err != nil {
		return "", err
	}
	e.training.Lock()
	defer e.training.Unlock()
	return b.save(ctx, e, name, optimizer)
}

func (b *Backend) save(ctx context.Context, e *entry, name string, optimizer bool) (path string, err error) {
	op := "save_weights"
	if !optimizer {
		op = "save_weights_for_sampler"
	}
	err = e.ordered(false, func(seq int) error {
		out, err := b.small(ctx, op, request{ModelID: e.model, SeqID: seq, Path: name, Type: op})
		if err == nil && out.Path == "" {
			err = b.broken(op, errors.New("the result has no path"))
		}
		path = out.Path
		return err
	})
	return path, err
}

// LoadWeights loads what the service has saved, tinker://RUN/weights/NAME.
func (b *Backend) LoadWeights(ctx context.Context, m *art.Model, path string, optimizer bool) error {
	e, err := b.trainable("load weights", m)
	if err != nil {
		return err
	}
	e.training.Lock()
	defer e.training.Unlock()
	err = b.load(ctx, e, path, optimizer)
	e.changed = e.changed || err == nil
	return err
}

func (b *Backend) load(ctx context.Context, e *entry, path string, optimizer bool) error {
	return e.ordered(true, func(seq int) error {
		_, err := b.small(ctx, "load_weights", request{
			ModelID: e.model, SeqID: seq, Path: path, LoadOptimizer: optimizer, Type: "load_weights",
		})
		return err
	})
}

// Publish saves the training state under the name of the next step, notes the path in the run directory, and samples
// with it from then on.
func (b *Backend) Publish(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, metrics map[string]float64,
) (int, error) {
	e, err := b.trainable("publish", m)
	if err != nil {
		return 0, err
	}
	e.training.Lock()
	defer e.training.Unlock()
	return b.commit(ctx, e, groups, metrics)
}

// commit is Publish. e.training is held.
func (b *Backend) commit(
	ctx context.Context, e *entry, groups []*art.TrajectoryGroup, metrics map[string]float64,
) (int, error) {
	step := e.run.Next()
	// A process that was killed may have saved this name, in a training run of its own.
	path, err := b.save(ctx, e, fmt.Sprintf("step-%06d", step), true)
	if err != nil {
		return 0, err
	}
	id, err := b.ephemeral(ctx, e)
	if err != nil {
		return 0, err
	}
	err = e.run.CommitUpdate(step, runs.Update{Groups: groups, Metrics: metrics}, remote{path, e.model}.write)
	if err != nil {
		return 0, err
	}
	e.serving.Store(&serving{step: step, sampler: id})
	e.changed = false
	return step, nil
}

// Snapshot makes a sampler of the training state, or of saved weights.
func (b *Backend) Snapshot(ctx context.Context, m *art.Model, path string, s *art.Model) error {
	e, err := b.trainable("snapshot", m)
	if err != nil {
		return err
	}
	frozen := &entry{tokenizer: e.tokenizer, template: e.template, base: e.base}
	var id string
	if path == "" {
		e.training.Lock()
		id, err = b.ephemeral(ctx, e)
		e.training.Unlock()
	} else {
		var out result
		err = b.post(ctx, "create_sampling_session", request{
			SessionID: b.session, SamplingSessionSeqID: new(int(b.samplers.Add(1)) - 1), ModelPath: path,
			Type: "create_sampling_session",
		}, &out)
		id = out.SamplingSessionID
	}
	if err != nil {
		return err
	}
	frozen.serving.Store(&serving{step: e.serving.Load().step, sampler: id})
	return b.models.Add(s, frozen, false)
}

// Release forgets a model. The service frees it when the session ends.
func (b *Backend) Release(_ context.Context, m *art.Model) error {
	e, err := b.models.Get("release", m)
	if err != nil {
		return err
	}
	b.models.Remove(m)
	if e.run == nil {
		return nil
	}
	return e.run.Close()
}

// trainable returns the entry of a model that is no snapshot.
func (b *Backend) trainable(op string, m *art.Model) (*entry, error) {
	e, err := b.models.Get(op, m)
	if err == nil {
		err = e.learns(op)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// learns returns the error of a snapshot.
func (e *entry) learns(op string) error {
	if e.run == nil {
		return &art.Error{Op: op, Err: art.ErrFrozen, Hint: "a snapshot does not change"}
	}
	return nil
}
