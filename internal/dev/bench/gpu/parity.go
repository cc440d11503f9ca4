package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// comparison says how much a device differs from the CPU device, for one model.
type comparison struct {
	Job      string `json:"job"`
	Device   string `json:"device"`
	Model    string `json:"model"`
	Weights  string `json:"weights"`
	Cache    string `json:"cache"`
	Replies  int    `json:"replies"`
	EqualIDs int    `json:"equal_ids"`    // replies with the same ids as on the CPU device
	Loop     int    `json:"loop_equal"`   // replies of the decode loop with the ids of single steps on this device
	Gap      figure `json:"gap_max"`      // of sampler and trainer on the device, nats
	Logprob  figure `json:"logprob_max"`  // of the device's replies, against the trainer of the CPU device, nats
	Gradient figure `json:"gradient_max"` // of a tensor, relative to its norm
	OK       bool   `json:"ok"`
	Problem  string `json:"problem,omitempty"` // why it is not
}

// figure is a number that may be NaN or infinite. JSON has finite numbers only; the others are "NaN", "+Inf", "-Inf".
type figure float64

func (f figure) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return json.Marshal(v)
}

// agrees reports whether the differences are rounding errors. NaN is none. A cache in bfloat16 rounds the keys and
// values that are sampled with, and not those of the trainer: on xla:cpu the gap is then 0.07 to 0.32 nats.
func (c comparison) agrees() bool {
	if c.Weights == "float32" {
		return c.Gap < 1e-4 && c.Logprob < 1e-4 && c.Gradient < 1e-3 && c.Loop == c.Replies && c.EqualIDs == c.Replies
	}
	gap := figure(0.2)
	if c.Cache == "bfloat16" {
		gap = 0.5
	}
	return c.Gap < gap && c.Logprob < 0.5 && c.Gradient < 0.1
}

// parity compares the built-in model, and one with random weights and odd dimensions. With float32 the differences must
// be rounding errors. When one comparison fails, the next ones still run.
func parity(o options) error {
	device, err := openDevice(o.name)
	if err != nil {
		return err
	}
	host, err := openDevice("cpu")
	if err != nil {
		return err
	}
	trained, err := tiny.Load()
	if err != nil {
		return err
	}
	c := qwen2(model.Config{
		VocabSize: 301, HiddenSize: 61, IntermediateSize: 163, NumLayers: 2, NumHeads: 6, NumKVHeads: 2, HeadDim: 34,
	})
	random, err := model.Random(&c, 11)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range []struct {
		name string
		w    *model.Weights
	}{{"tiny", trained}, {"odd", random}} {
		for _, kinds := range [][2]string{
			{"float32", "float32"}, {"bfloat16", "float32"}, {"bfloat16", "bfloat16"}, {"int8", "bfloat16"},
		} {
			weights, cache := kinds[0], kinds[1]
			r, err := compare(host, device, m.w, weights, cache)
			r.Job, r.Device, r.Model, r.Weights, r.Cache = "parity", o.name, m.name, weights, cache
			if err == nil && !r.agrees() {
				err = errors.New("differs from the CPU device by more than rounding")
			}
			if r.OK = err == nil; !r.OK {
				r.Problem = err.Error()
				errs = append(errs, fmt.Errorf("%s, %s with %s: %w", o.name, m.name, weights, err))
			}
			if err := emit(r); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

// compare samples on both devices, and trains on the replies of one on both.
func compare(host, device compute.Backend, w *model.Weights, weights, cache string) (r comparison, err error) {
	kind, err := typeOf(weights)
	if err != nil {
		return r, err
	}
	cached, err := typeOf(cache)
	if err != nil {
		return r, err
	}
	a, err := adapterOf(w.Config)
	if err != nil {
		return r, err
	}
	onHost, err := hostWeights(w, kind).Params(host)
	if err != nil {
		return r, err
	}
	onDevice, err := w.ParamsAs(device, kind)
	if err != nil {
		return r, err
	}
	want, err := replies(engine.Options{Device: host, Config: w.Config, Params: onHost}, a)
	if err != nil {
		return r, err
	}
	single := engine.Options{Device: device, Config: w.Config, Params: onDevice, CacheType: cached, DecodeSteps: 1}
	loop := single
	loop.DecodeSteps = 16
	stepped, err := replies(single, a)
	if err != nil {
		return r, err
	}
	looped, err := replies(loop, a)
	if err != nil {
		return r, err
	}
	r.Replies = len(want)
	for i := range want {
		if slices.Equal(want[i].IDs, looped[i].IDs) {
			r.EqualIDs++
		}
		if slices.Equal(stepped[i].IDs, looped[i].IDs) {
			r.Loop++
		}
	}
	mine, report, err := gradient(device, w.Config, onDevice, a, looped)
	if err != nil {
		return r, err
	}
	r.Gap = gapOf(report.First)
	theirs, report, err := gradient(host, w.Config, onHost, a, looped)
	if err != nil {
		return r, err
	}
	r.Logprob = gapOf(report.First)
	for i := range theirs.M {
		r.Gradient = max(r.Gradient, apart(theirs.M[i], mine.M[i]))
	}
	return r, nil
}

// hostWeights are those that the CPU device is given: of int8 what the device has, of bfloat16 the numbers before
// rounding.
func hostWeights(w *model.Weights, matrices dtypes.DType) *model.Weights {
	if matrices == dtypes.Int8 {
		return w.Rounded(matrices)
	}
	return w
}

// gapOf is the largest gap. The maximum of a device may ignore a NaN, the mean does not.
func gapOf(metrics map[string]float64) figure {
	if math.IsNaN(metrics["loss/log_ratio_mean"]) {
		return figure(math.NaN())
	}
	return figure(metrics["loss/log_ratio_max"])
}

// apart is the distance of b from a, relative to the norm of a. It is infinite or NaN when only a is zero, or one of
// them is not finite.
func apart(a, b []float32) figure {
	d := distance(a, b)
	if d == 0 {
		return 0
	}
	return figure(d / distance(a, nil))
}

// replies are prompts followed by what was sampled after them.
func replies(opts engine.Options, a *lora.Adapter) ([]grpo.Sequence, error) {
	const prompt, made = 6, 30
	opts.Slots, opts.Context, opts.FewShapes = 4, 64, true
	e, err := engine.New(opts)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	loaded, err := e.NewAdapter(a)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var all []grpo.Sequence
	for i := range 8 {
		ids := make([]int32, prompt)
		for j := range ids {
			ids[j] = int32(rng.IntN(opts.Config.VocabSize))
		}
		r, err := e.Complete(context.Background(), engine.Request{
			Prompt: ids, MaxTokens: made, Seed: uint64(i), Adapter: loaded,
			Sampling: sampling.Settings{Temperature: 1, TopP: []float64{1, 0.9}[i%2]},
		})
		if err != nil {
			return nil, err
		}
		s := grpo.Sequence{
			IDs: slices.Concat(ids, r.IDs), Trained: make([]bool, prompt+made), Logprobs: make([]float32, prompt+made),
			Advantage: 1, Weight: 1, Trajectory: i,
		}
		for j := range made {
			s.Trained[prompt+j], s.Logprobs[prompt+j] = true, r.Logprobs[j]
		}
		all = append(all, s)
	}
	return all, nil
}

// gradient makes an update with learning rate 0 and beta1 0: the first moments of the state are then the gradient.
func gradient(
	on compute.Backend, c *model.Config, params *model.Params, a *lora.Adapter, batch []grpo.Sequence,
) (*trainer.State, *trainer.Report, error) {
	return trainer.New(trainer.AdapterTarget(c, params, a), trainer.Options{Device: on, FewShapes: true}).Train(
		context.Background(), trainer.AdapterState(a), batch, trainer.Run{
			Loss: grpo.PolicyLoss{Loss: credit.PPO}, Optimizer: grpo.AdamW{Beta2: 0.99, Eps: 1e-8},
			Rate: func(int) float64 { return 0 }, Epochs: 1, MiniBatches: 1,
		})
}

// distance is Euclidean; from nil it is the norm.
func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i])
		if b != nil {
			d -= float64(b[i])
		}
		sum += d * d
	}
	return math.Sqrt(sum)
}
