package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// promptOfDecode is the number of tokens that are cached when decoding begins.
const promptOfDecode = 128

// measureJob makes random weights and measures one job.
func measureJob(job string, o options) error {
	c, err := configOf(o.shape)
	if err != nil {
		return err
	}
	kind, err := typeOf(o.weights)
	if err != nil {
		return err
	}
	cached, err := typeOf(o.cache)
	if err != nil {
		return err
	}
	kept, err := keepPrograms(job, o)
	if err != nil {
		return err
	}
	places, err := openPlaces(o, c, kind)
	if err != nil {
		return err
	}
	defer progress(places[0].device)()
	s := &subject{options: o, place: places[0], all: places, config: c, cached: cached, kept: kept}
	return map[string]func() error{
		"forward": s.forward, "prefill": s.prefill, "decode": s.decode, "train": s.train, "grpo": s.grpo, "gap": s.gap,
	}[job]()
}

// progress says every 5 seconds how many programs have been compiled, until it is stopped: that takes most of the time
// before the first figure.
func progress(device compute.Backend) (stop func()) {
	start, ticker, done := time.Now(), time.NewTicker(5*time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				programs, took := graphx.Compiled(device)
				fmt.Fprintf(os.Stderr, "gpu: %3.0f s: %d programs, compiled in %.1f s\n",
					time.Since(start).Seconds(), programs, took.Seconds())
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
	}
}

// subject is the measured model on its device.
type subject struct {
	options
	place          // the first device
	all    []place // and those that share the steps of GRPO with it
	config *model.Config
	cached dtypes.DType           // of the KV cache
	kept   func(programs int) int // see keepPrograms
}

// work is what one run of a job does.
type work struct {
	job    string
	tokens int           // that the rate counts, of all sequences
	prompt int           // tokens of each prompt, for steps of GRPO
	first  time.Duration // of the first run, 0 when it has not been made yet
	less   time.Duration // subtracted from each run
	step   *step         // what the last run was made of, for steps of GRPO
}

// timing is a run that counts.
type timing struct {
	seconds float64
	step    step
}

// report times f, which runs the job once, and prints the rates.
func (s *subject) report(w work, f func() error) error {
	start, first := time.Now(), w.first
	if err := f(); err != nil {
		return err
	}
	if first == 0 {
		first = time.Since(start)
	}
	unlock, err := s.alone()
	if err != nil {
		return err
	}
	defer unlock()
	list, err := s.times(w, f)
	if err != nil {
		return err
	}
	return emit(s.result(w, first, list))
}

// result is that of runs.
func (s *subject) result(w work, first time.Duration, list []timing) result {
	slices.SortFunc(list, func(a, b timing) int { return cmp.Compare(a.seconds, b.seconds) })
	median := list[len(list)/2]
	r := result{
		Who: "art", Job: w.job, Device: s.options.name, Card: s.card, Shape: s.shape, Weights: s.weights, Cache: s.cache,
		Batch: s.batch, Prompt: w.prompt, Tokens: s.tokens - w.prompt,
		First: first.Seconds(), Best: list[0].seconds, Median: median.seconds,
		Rate: float64(w.tokens) / median.seconds, Recompute: s.recompute, Go: runtime.Version(),
	}
	if w.step != nil {
		r.Devices, r.Rollouts, r.Training = len(s.all), median.step.rollouts, median.step.training
		r.Gap = gapOfRuns(list)
	}
	if w.job == "decode" || w.step != nil {
		r.Steps = s.steps
	}
	programs, took := s.compiled()
	r.Programs, r.Kept, r.Compile = programs, s.kept(programs), took.Seconds()
	return r
}

// compiled is how many programs all devices have compiled or read, and how long that took.
func (s *subject) compiled() (programs int, took time.Duration) {
	for _, on := range s.all {
		n, t := graphx.Compiled(on.device)
		programs, took = programs+n, took+t
	}
	return programs, took
}

// alone waits until no other program that was given the same file measures. Several can then compile at once.
func (s *subject) alone() (unlock func(), err error) {
	if s.lock == "" {
		return func() {}, nil
	}
	lock := flock.New(s.lock)
	return func() { _ = lock.Unlock() }, lock.Lock()
}

// times runs f until the budget is spent, at least once and at most as often as runs says. A run in which a program was
// compiled does not count.
func (s *subject) times(w work, f func() error) (list []timing, err error) {
	for start := time.Now(); len(list) == 0 || len(list) < s.runs && time.Since(start) < s.budget; {
		before, _ := s.compiled()
		begin := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		t := timing{seconds: (time.Since(begin) - w.less).Seconds()}
		if w.step != nil {
			t.step = *w.step
		}
		if after, _ := s.compiled(); after == before {
			list = append(list, t)
		}
	}
	return list, nil
}

// ids returns arbitrary tokens.
func (s *subject) ids(n, from int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32((from*7919 + i*104729) % s.config.VocabSize)
	}
	return list
}

// forward computes the hidden states of sequences, and the logits of their last tokens, in one graph without a cache.
func (s *subject) forward() error {
	n := len(s.params.Names)
	exec, err := NewExec(s.device, func(in []*Node) *Node {
		f := &model.Forward{Config: s.config, Param: s.params.Lookup(in[:n]), Frozen: true}
		h, _ := f.Hidden(model.Input{Tokens: in[n]})
		return f.Logits(Reshape(Slice(h, AxisRange(), AxisElem(-1)), s.batch, s.config.HiddenSize))
	})
	if err != nil {
		return err
	}
	var in []any
	for _, x := range s.params.Tensors {
		in = append(in, x)
	}
	in = append(in, tensors.FromFlatDataAndDimensions(s.ids(s.batch*s.tokens, 1), s.batch, s.tokens))
	return s.report(work{job: "forward", tokens: s.batch * s.tokens}, func() error {
		out, err := exec.Call1(in...)
		if err != nil {
			return err
		}
		_, err = tensors.CopyFlatData[float32](out)
		out.MustFinalizeAll()
		return err
	})
}

// engine opens an engine for so many requests at once.
func (s *subject) engine(on place, slots, context int) (*engine.Engine, error) {
	return engine.New(engine.Options{
		Device: on.device, Config: s.config, Params: on.params, Slots: slots, Context: context, CacheType: s.cached,
		FewShapes: true, DecodeSteps: s.steps,
	})
}

// complete sends all requests at once.
func complete(e *engine.Engine, prompts [][]int32, tokens int) error {
	errs := make([]error, len(prompts))
	var wg sync.WaitGroup
	for i, p := range prompts {
		wg.Go(func() {
			r, err := e.Complete(context.Background(), engine.Request{
				Prompt: p, MaxTokens: tokens, Seed: uint64(i), Sampling: sampling.Settings{Temperature: 1, TopP: 1},
			})
			if err == nil && len(r.IDs) != tokens {
				err = fmt.Errorf("%d tokens, want %d", len(r.IDs), tokens)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// prefill makes one token after prompts that are not cached.
func (s *subject) prefill() error {
	e, err := s.engine(s.place, s.batch, s.tokens+1)
	if err != nil {
		return err
	}
	defer e.Close()
	call := 0
	return s.report(work{job: "prefill", tokens: s.batch * s.tokens}, func() error {
		var prompts [][]int32
		for range s.batch {
			call++
			prompts = append(prompts, s.ids(s.tokens, call))
		}
		return complete(e, prompts, 1)
	})
}

// decode makes tokens of sequences whose prompts are cached. The time of a call that makes a single token, with the
// copies of the prompts from slot to slot, is subtracted.
func (s *subject) decode() error {
	e, err := s.engine(s.place, s.batch, promptOfDecode+s.tokens+1)
	if err != nil {
		return err
	}
	defer e.Close()
	var prompts [][]int32
	for i := range s.batch {
		prompts = append(prompts, s.ids(promptOfDecode, i))
	}
	start := time.Now()
	if err := complete(e, prompts, 2); err != nil {
		return err
	}
	first := time.Since(start)
	for range 2 { // prompts are cached
		if err := complete(e, prompts, 1); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := complete(e, prompts, 1); err != nil {
		return err
	}
	least := time.Since(begin)
	return s.report(work{
		job: "decode", tokens: s.batch * s.tokens, first: first, less: least,
	}, func() error { return complete(e, prompts, s.tokens+1) })
}

// train makes updates of an adapter: forward, backward and AdamW. A backward pass with frozen weights costs as much as
// a forward one.
func (s *subject) train() error {
	a, err := adapterOf(s.config)
	if err != nil {
		return err
	}
	batch := make([]grpo.Sequence, s.batch)
	for i := range batch {
		batch[i] = sequence(s.ids(s.tokens+1, i), 1, i)
	}
	update := s.trains(a, s.batch*s.tokens, updates)
	return s.report(work{job: "train", tokens: updates * s.batch * s.tokens}, func() error {
		_, err := update(batch, grpo.SupervisedLoss{})
		return err
	})
}

// updates is the number of updates of a run of the job train.
const updates = 4

// trains returns what makes updates of an adapter with a batch, on all devices.
func (s *subject) trains(
	a *lora.Adapter, microTokens, updates int,
) func([]grpo.Sequence, grpo.Loss) (*trainer.Report, error) {
	opts := trainer.Options{
		Device: s.device, Workers: 1, MicroTokens: microTokens, FewShapes: true, Recompute: s.recompute,
	}
	for _, r := range s.all[1:] {
		opts.Replicas = append(opts.Replicas, trainer.Replica{
			Device: r.device, Params: r.params, Programs: graphx.NewPrograms(r.device, plan.TrainingPrograms(s.config)),
		})
	}
	teacher, state := trainer.New(trainer.AdapterTarget(s.config, s.params, a), opts), trainer.AdapterState(a)
	return func(batch []grpo.Sequence, loss grpo.Loss) (*trainer.Report, error) {
		_, report, err := teacher.Train(context.Background(), state, batch, trainer.Run{
			Loss: loss, Optimizer: grpo.DefaultAdamW(), Rate: func(int) float64 { return 1e-5 },
			Epochs: updates, MiniBatches: 1,
		})
		return report, err
	}
}

// sequence is one whose tokens after a prompt are trained on.
func sequence(ids []int32, prompt, number int) grpo.Sequence {
	q := grpo.Sequence{
		IDs: ids, Trained: slices.Repeat([]bool{true}, len(ids)), Logprobs: make([]float32, len(ids)), Weight: 1,
		Advantage: float64(number%2*2 - 1), Trajectory: number,
	}
	for i := range prompt {
		q.Trained[i] = false
	}
	return q
}
