package tinker_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/loop"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
)

// skyrl opens a backend on the server in $ART_SKYRL_URL, and registers a model. The run directory is in dir.
func skyrl(t *testing.T, dir string, opts *art.ModelOptions) (*client.Backend, *art.Model) {
	t.Helper()
	address := os.Getenv("ART_SKYRL_URL")
	if address == "" {
		t.Skip("internal/dev/conformance/skyrl/run.py runs it on SkyRL's server")
	}
	b, err := client.Open(t.Context(), &client.Options{
		BaseURL: address, Tokenizer: "../../model/tiny", Dir: dir, JSON: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	m := art.NewModel("player", opts)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b, m
}

func skyrlOptions() *art.ModelOptions {
	return &art.ModelOptions{Base: os.Getenv("ART_SKYRL_BASE"), Seed: 7, LoRA: art.LoRA{Rank: 4, Alpha: 32}}
}

// answer samples an answer of up to six tokens.
func answer(t *testing.T, m *art.Model, seed uint64) *art.Sample {
	t.Helper()
	r, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("yes or no?")}},
		&art.ChatOptions{MaxTokens: new(6), Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	return r.Message.Sample
}

// scored returns the logprobs of a sample's prompt and answer under the training state.
func scored(t *testing.T, m *art.Model, s *art.Sample) []float32 {
	t.Helper()
	d := datum(s, 0)
	d.Advantages, d.Logprobs = nil, nil
	d.Weights = slices.Repeat([]float32{1}, len(d.Input))
	r, err := loop.Forward(t.Context(), m, []loop.Datum{d}, credit.CrossEntropy, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Logprobs[0]
}

// within fails unless two lists are equal up to a tolerance, and says how far they are apart.
func within(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	most := 0.0
	for i := range got {
		most = max(most, math.Abs(float64(got[i]-want[i])))
	}
	t.Logf("%s: at most %.2g apart", what, most)
	if !(most <= tolerance) {
		t.Errorf("%s: %v apart, want at most %v", what, most, tolerance)
	}
}

// checkGap compares what came with a sample with two ways to score it: the sampler's, and that of training.
func checkGap(t *testing.T, m *art.Model, s *art.Sample) {
	t.Helper()
	ids := slices.Concat(s.PromptIDs, s.IDs)
	list, _, err := m.Backend().(driver.Sampler).Logprobs(t.Context(), m, ids)
	if err != nil {
		t.Fatal(err)
	}
	trained := scored(t, m, s)
	within(t, "prompt logprobs and training", list, trained, 1e-3)
	within(t, "sample and training", s.Logprobs, trained[len(trained)-len(s.IDs):], 1e-3)
}

// update makes an optimizer step.
func update(
	t *testing.T, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) *loop.ForwardResult {
	t.Helper()
	r, err := loop.ForwardBackward(t.Context(), m, data, loss, config)
	if err != nil {
		t.Fatal(loss, err)
	}
	adam := loop.DefaultAdamW()
	adam.LearningRate = 1e-3
	o, err := loop.OptimStep(t.Context(), m, adam)
	if err != nil {
		t.Fatal(loss, err)
	}
	if !(o.GradNorm > 0) {
		t.Errorf("%s: the norm of the gradient is %v", loss, o.GradNorm)
	}
	return r
}

// policyValue is the loss of a datum before any update: its formula at the logprobs that training computes.
func policyValue(loss credit.Loss, d *loop.Datum, logprobs []float32, low, high float64) (sum float64) {
	for i, a := range d.Advantages {
		if d.Targets[i] == loop.NoTarget {
			continue
		}
		p, advantage := float64(logprobs[i]), float64(a)
		ratio := math.Exp(p - float64(d.Logprobs[i]))
		clipped := min(max(ratio, low), high)
		switch loss {
		case credit.ImportanceSampling:
			sum -= ratio * advantage
		case credit.PPO:
			sum -= min(ratio*advantage, clipped*advantage)
		case credit.CISPO:
			sum -= clipped * p * advantage
		}
	}
	return sum
}

// TestSkyRL_Learn: sampling, all losses, publishing, a resume with the optimizer, and the adapter at home.
func TestSkyRL_Learn(t *testing.T) {
	dir := t.TempDir()
	b, m := skyrl(t, dir, skyrlOptions())
	first, again := answer(t, m, 1<<40+3), answer(t, m, 1<<40+3)
	if !slices.Equal(first.IDs, again.IDs) || len(first.IDs) == 0 {
		t.Errorf("one seed gives %v and %v", first.IDs, again.IDs)
	}
	within(t, "one seed", first.Logprobs, again.Logprobs, 0)
	checkGap(t, m, first)

	one := datum(first, 0)
	one.Advantages, one.Logprobs = nil, nil
	one.Weights = slices.Repeat([]float32{1}, len(one.Input))
	var losses []float64
	for range 5 {
		losses = append(losses, update(t, m, []loop.Datum{one}, credit.CrossEntropy, nil).Loss)
	}
	t.Log("losses of supervised training:", losses)
	if !slices.IsSortedFunc(losses, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) {
		t.Errorf("losses do not fall: %v", losses)
	}
	publish(t, m, 1)
	s := answer(t, m, 5)
	checkGap(t, m, s)

	data := []loop.Datum{datum(s, 0.5), datum(answer(t, m, 6), -0.5)}
	for i := range data[0].Logprobs {
		data[0].Logprobs[i] -= float32(i%3) * 0.4 // some ratios are clipped
	}
	for _, test := range []struct {
		loss      credit.Loss
		low, high float64
	}{
		{credit.ImportanceSampling, 0, math.Inf(1)}, {credit.PPO, 0.8, 1.2}, {credit.CISPO, 0, 1.5},
	} {
		var config loop.LossConfig
		if test.loss != credit.ImportanceSampling {
			config = loop.LossConfig{"clip_low_threshold": test.low, "clip_high_threshold": test.high}
		}
		r := update(t, m, data, test.loss, config)
		want := 0.0
		for i := range data {
			want += policyValue(test.loss, &data[i], r.Logprobs[i], test.low, test.high)
		}
		t.Logf("%s: loss %v, by its formula %v, gap %v", test.loss, r.Loss, want, r.Metrics["train/logprob_gap_max"])
		if math.Abs(r.Loss-want) > 1e-4*max(1, math.Abs(want)) {
			t.Errorf("%s: the loss is %v, want %v", test.loss, r.Loss, want)
		}
	}
	publish(t, m, 2)
	checkResume(t, dir, b, m, one)
}

func publish(t *testing.T, m *art.Model, want int) {
	t.Helper()
	if step, err := m.Publish(t.Context(), nil, nil); err != nil || step != want {
		t.Fatalf("step %d, want %d: %v", step, want, err)
	}
}

// checkResume makes an update that is not published, registers the model in another backend, and makes it again: with
// the weights and the optimizer of the step, it ends where the first did.
func checkResume(t *testing.T, dir string, b *client.Backend, m *art.Model, d loop.Datum) {
	t.Helper()
	s := answer(t, m, 9)
	before := scored(t, m, s)
	update(t, m, []loop.Datum{d}, credit.CrossEntropy, nil)
	want := scored(t, m, s)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b, m = skyrl(t, dir, skyrlOptions())
	if m.Step() != 2 {
		t.Fatalf("resumed at step %d, want 2", m.Step())
	}
	within(t, "the resumed step", scored(t, m, s), before, 1e-5)
	resampled := answer(t, m, 9)
	if !slices.Equal(resampled.IDs, s.IDs) {
		t.Errorf("the resumed step samples %v, want %v", resampled.IDs, s.IDs)
	}
	checkHome(t, b, m, s)
	update(t, m, []loop.Datum{d}, credit.CrossEntropy, nil)
	within(t, "an update after the resume", scored(t, m, s), want, 1e-5)
}

// checkHome downloads the newest step, and compares its logprobs with those of the service.
func checkHome(t *testing.T, b *client.Backend, m *art.Model, s *art.Sample) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "adapter")
	if err := b.Download(t.Context(), m, m.Step(), folder); err != nil {
		t.Fatal(err)
	}
	home, err := local.Open(t.Context(), &local.Options{Dir: t.TempDir(), Context: 128, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	own := art.NewModel("home", &art.ModelOptions{Base: "tiny", Adapter: folder})
	if err := own.Register(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	ids := slices.Concat(s.PromptIDs, s.IDs)
	got, _, err := home.Logprobs(t.Context(), own, ids)
	if err != nil {
		t.Fatal(err)
	}
	there, _, err := b.Logprobs(t.Context(), m, ids)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the adapter at home", got, there, 1e-3)
}

// TestSkyRL_Train: the training calls make steps there.
func TestSkyRL_Train(t *testing.T) {
	_, m := skyrl(t, t.TempDir(), skyrlOptions())
	for _, loss := range []credit.Loss{credit.CISPO, credit.PPO, credit.GRPO, credit.ImportanceSampling} {
		groups := []*art.TrajectoryGroup{play(t, m, 1<<50), play(t, m, 10)}
		r, err := m.Train(t.Context(), groups, &art.TrainConfig{Loss: loss, LearningRate: 1e-3})
		if err != nil {
			t.Fatal(loss, err)
		}
		t.Log(loss, "step", r.Step, "gap", r.Metrics["train/logprob_gap_max"], "norm", r.Metrics["loss/grad_norm"])
		if !(r.Metrics["train/logprob_gap_max"] < 1e-3) {
			t.Errorf("%s: the gap is %v", loss, r.Metrics["train/logprob_gap_max"])
		}
	}
	conversations := []*art.Trajectory{
		art.NewTrajectory(art.User("a?"), art.Assistant("b")), art.NewTrajectory(art.User("c?"), art.Assistant("dd")),
	}
	var losses []float64
	for range 3 {
		r, err := m.TrainSFT(t.Context(), conversations, &art.SFTConfig{LearningRate: 1e-3, BatchSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, r.Metrics["loss/sft"])
	}
	t.Log("SFT", losses)
	if !(losses[2] < losses[0]) {
		t.Errorf("supervised losses are %v", losses)
	}
}

// TestSkyRL_Refused: what the server lacks is an error, soon, and the model goes on.
func TestSkyRL_Refused(t *testing.T) {
	b, m := skyrl(t, t.TempDir(), skyrlOptions())
	s := answer(t, m, 1)
	d := datum(s, 0.5)
	negative := datum(s, 0)
	negative.Advantages, negative.Logprobs = nil, nil
	negative.Weights = slices.Repeat([]float32{-1}, len(negative.Input))
	targets := loop.Datum{
		Input: []int32{65, 66}, Targets: []int32{66, 67, 68, 69}, Weights: []float32{0.5, 0.5, 0.5, 0.5}, K: 2,
	}
	pass := func(d loop.Datum, loss credit.Loss, config loop.LossConfig) func() error {
		return func() error {
			_, err := loop.ForwardBackward(t.Context(), m, []loop.Datum{d}, loss, config)
			return err
		}
	}
	register := func(base string, rank int) func() error {
		return func() error {
			name := fmt.Sprint("other-", rank)
			other := art.NewModel(name, &art.ModelOptions{Base: base, LoRA: art.LoRA{Rank: rank, Alpha: 32}})
			return other.Register(t.Context(), b)
		}
	}
	for _, test := range []struct {
		name string
		call func() error
		want error
		text string
	}{
		{"dro", pass(d, credit.DRO, loop.LossConfig{"beta": 0.1}), art.ErrInvalid, ""},
		{"an unknown option", pass(d, credit.CISPO, loop.LossConfig{"delta": 1}), art.ErrInvalid, "delta"},
		{"another base", register("org/other", 4), art.ErrBaseModel, "org/other"},
		{"a large rank", register(os.Getenv("ART_SKYRL_BASE"), 64), art.ErrInvalid, "rank"},
		{"a name twice", func() error {
			_, err := b.SaveWeights(t.Context(), m, "twice", true)
			if err == nil {
				_, err = b.SaveWeights(t.Context(), m, "twice", true)
			}
			return err
		}, art.ErrInvalid, "choose another name"},
		{"no limit of tokens", func() error {
			_, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("hi")}}, nil)
			return err
		}, art.ErrInvalid, "max_tokens"},
		{"targets of several tokens", pass(targets, credit.CrossEntropy, nil), client.ErrService, ""},
		{"negative weights", pass(negative, credit.CrossEntropy, nil), art.ErrUnsupported, ""},
		{"weights that are not there", func() error {
			return b.LoadWeights(t.Context(), m, "tinker://model_00000000/weights/none", true)
		}, nil, "not found"},
	} {
		began := time.Now()
		err := test.call()
		t.Logf("%s: %.1f s: %v", test.name, time.Since(began).Seconds(), err)
		if errors.Is(err, client.ErrService) || errors.Is(err, art.ErrUnsupported) { // it has to be registered again
			b, m = skyrl(t, t.TempDir(), skyrlOptions())
		}
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v, want %v with %q", test.name, err, test.want, test.text)
		}
	}
}
