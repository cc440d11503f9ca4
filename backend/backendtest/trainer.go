package backendtest

import (
	"context"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
)

func sample(t *subtest, m *art.Model, seed uint64) *art.Sample {
	t.Helper()
	return sampled(t, m, "What is the colour of the sky?", seeded(seed))
}

// datumOf makes a datum of a sample whose tokens all have the same advantage.
func datumOf(s *art.Sample, advantage float32) loop.Datum {
	ids := append(append([]int32{}, s.PromptIDs...), s.IDs...)
	n := len(ids) - 1
	d := loop.Datum{
		Input: ids[:n], Targets: make([]int32, n), Logprobs: make([]float32, n), Advantages: make([]float32, n),
	}
	for i := range n {
		d.Targets[i] = loop.NoTarget
		if k := i + 1 - len(s.PromptIDs); k >= 0 {
			d.Targets[i], d.Logprobs[i], d.Advantages[i] = ids[i+1], s.Logprobs[k], advantage
		}
	}
	return d
}

func target(s *art.Sample) loop.Datum {
	d := datumOf(s, 1)
	d.Logprobs, d.Advantages = nil, nil
	return d
}

func forward(t *subtest, m *art.Model, data []loop.Datum, loss credit.Loss) *loop.ForwardResult {
	t.Helper()
	result, err := loop.Forward(t.Context(), m, data, loss, nil)
	must(t, "Forward", err)
	return result
}

// learn adds the gradient of data, and makes an update.
func learn(t *subtest, m *art.Model, data []loop.Datum, loss credit.Loss) *loop.OptimResult {
	t.Helper()
	_, err := loop.ForwardBackward(t.Context(), m, data, loss, nil)
	must(t, "ForwardBackward", err)
	adamw := loop.DefaultAdamW()
	adamw.LearningRate = 1e-3
	result, err := loop.OptimStep(t.Context(), m, adamw)
	must(t, "OptimStep", err)
	return result
}

// near reports whether two numbers are equal up to the rounding of float32.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*(1+math.Abs(a)) }

// testTrainer checks what holds of a loop of one's own on every Trainer.
func testTrainer(t *subtest, b art.Backend) {
	optional[loop.Trainer](t, b)
	for name, test := range map[string]func(*subtest, *art.Model){
		"Losses": testTokenLosses, "Accumulate": testAccumulate, "Learn": testPrimitivesLearn, "Save": testSaveWeights,
		"Snapshot": testSnapshot, "Unpublished": testUnpublished, "Invalid": testTrainerInvalid,
	} {
		t.Run(name, func(t *subtest) { test(t, register(t, b, nil)) })
	}
	t.Run("Release", func(t *subtest) { // a run can be registered again, at the step that was published
		m := register(t, b, nil)
		_, err := m.Publish(t.Context(), nil, nil)
		must(t, "Publish", err)
		must(t, "Release", m.Release(t.Context()))
		_, err = m.Publish(t.Context(), nil, nil)
		wantError(t, "Publish after Release", err, art.ErrNotRegistered)
		again := describe(t, "", nil)
		must(t, "Register again", again.Register(t.Context(), b))
		wantStep(t, again, 1)
	})
}

// testTokenLosses checks the values of the losses by their formulas, from the logprobs that come with them.
func testTokenLosses(t *subtest, m *art.Model) {
	d := datumOf(sample(t, m, 1), 0.5)
	for i := range d.Logprobs { // off policy
		if d.Targets[i] != loop.NoTarget {
			d.Logprobs[i] -= 0.5
		}
	}
	formulas := map[credit.Loss]func(p, q, a float64) float64{
		credit.ImportanceSampling: func(p, q, a float64) float64 { return -math.Exp(p-q) * a },
		credit.PPO: func(p, q, a float64) float64 {
			r := math.Exp(p - q)
			return -min(r*a, min(max(r, 0.8), 1.2)*a)
		},
		credit.CISPO: func(p, q, a float64) float64 { return -min(math.Exp(p-q), 4) * a * p },
		credit.DRO:   func(p, q, a float64) float64 { return 0.025*(p-q)*(p-q) - p*a },
	}
	for loss, formula := range formulas {
		result := forward(t, m, []loop.Datum{d}, loss)
		want := 0.0
		for i, target := range d.Targets {
			if target != loop.NoTarget {
				want += formula(float64(result.Logprobs[0][i]), float64(d.Logprobs[i]), float64(d.Advantages[i]))
			} else if result.Logprobs[0][i] != 0 {
				t.Errorf("%s: logprob %d is %v, and has no target", loss, i, result.Logprobs[0][i])
			}
		}
		if !near(want, result.Loss) {
			t.Errorf("%s is %v, want %v: a plain sum", loss, result.Loss, want)
		}
	}
	soft := target(sample(t, m, 1))
	soft.K, soft.Targets, soft.Weights = 2, nil, nil
	for i := range soft.Input {
		soft.Targets = append(soft.Targets, soft.Input[i], loop.NoTarget)
		soft.Weights = append(soft.Weights, -2, 1)
	}
	result, want := forward(t, m, []loop.Datum{soft}, credit.CrossEntropy), 0.0
	for i, p := range result.Logprobs[0] {
		if i%2 == 0 {
			want += 2 * float64(p)
		}
	}
	if want == 0 || !near(want, result.Loss) {
		t.Errorf("cross-entropy with two targets is %v, want %v", result.Loss, want)
	}
}

// testAccumulate checks that gradients of several calls add up, that Forward adds none, and that a custom loss has the
// gradient of the named one.
func testAccumulate(t *subtest, m *art.Model) {
	data := []loop.Datum{target(sample(t, m, 1)), target(sample(t, m, 2))}
	none := loop.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8} // a learning rate of 0
	step := func(what string, add func() error) float64 {
		must(t, what, add())
		result, err := loop.OptimStep(t.Context(), m, none)
		must(t, "OptimStep", err)
		return result.GradNorm
	}
	backward := func(data ...loop.Datum) error {
		_, err := loop.ForwardBackward(t.Context(), m, data, credit.CrossEntropy, nil)
		return err
	}
	whole := step("one call", func() error { return backward(data...) })
	parts := step("two calls", func() error {
		if err := backward(data[0]); err != nil {
			return err
		}
		forward(t, m, data, credit.CrossEntropy)
		return backward(data[1])
	})
	custom := step("custom", func() error {
		_, err := loop.ForwardBackwardCustom(t.Context(), m, data, func(p [][]float32) (float64, [][]float32, error) {
			out := make([][]float32, len(p))
			for i := range p {
				out[i] = make([]float32, len(p[i]))
				for j := range out[i] {
					out[i][j] = -1
				}
			}
			return 0, out, nil
		})
		return err
	})
	if !(whole > 0) || !near(whole, parts) || !near(whole, custom) {
		t.Errorf("the norm of the gradient is %v of one call, %v of two, %v of a custom loss; want the same", whole, parts,
			custom)
	}
	if norm := step("nothing", func() error { return nil }); norm != 0 {
		t.Errorf("the norm of no gradient is %v", norm)
	}
}

// testPrimitivesLearn checks that updates make targets likelier, that the step that answers stays until Publish, and
// that it moves then.
func testPrimitivesLearn(t *subtest, m *art.Model) {
	data := []loop.Datum{target(sample(t, m, 1))}
	before := forward(t, m, data, credit.CrossEntropy).Loss
	for i := range 3 {
		if result := learn(t, m, data, credit.CrossEntropy); result.Skipped || result.Updates != i+1 {
			t.Errorf("update %d: %+v", i+1, result)
		}
	}
	after := forward(t, m, data, credit.CrossEntropy).Loss
	if !(after < before) {
		t.Errorf("the loss was %v and is %v after three updates", before, after)
	}
	wantStep(t, m, 0)
	groups := gather(t, m, 1)
	step, err := m.Publish(t.Context(), groups, map[string]float64{"loss/own": after})
	if err != nil || step != 1 {
		t.Fatalf("Publish: step %d, error %v", step, err)
	}
	wantStep(t, m, 1)
	if got := forward(t, m, data, credit.CrossEntropy).Loss; got != after {
		t.Errorf("the loss is %v after Publish, and was %v", got, after)
	}
	if got := sample(t, m, 1).Step; got != 1 {
		t.Errorf("step %d answers, want the one that was published", got)
	}
	if keeper, ok := m.Backend().(driver.CheckpointKeeper); ok {
		wantRow(t, keeper, m, 0, map[string]float64{"loss/own": after})
	}
	if _, err := m.Train(t.Context(), groups, nil); err != nil {
		t.Errorf("Train after Publish: %v", err)
	}
}

// testSaveWeights checks that what was saved is loaded, with its optimizer and without.
func testSaveWeights(t *subtest, m *art.Model) {
	data := []loop.Datum{target(sample(t, m, 1))}
	loss := func() float64 { return forward(t, m, data, credit.CrossEntropy).Loss }
	learn(t, m, data, credit.CrossEntropy)
	saved := loss()
	path, err := loop.SaveWeights(t.Context(), m, "000001", true)
	must(t, "SaveWeights", err)
	bare, err := loop.SaveWeights(t.Context(), m, "bare", false)
	must(t, "SaveWeights", err)
	_, err = loop.SaveWeights(t.Context(), m, "bare", false)
	wantError(t, "SaveWeights of a stored name", err, art.ErrInvalid)
	learn(t, m, data, credit.CrossEntropy)
	next := loss()

	for _, optimizer := range []bool{true, false} {
		must(t, "LoadWeights", loop.LoadWeights(t.Context(), m, path, optimizer))
		if got := loss(); got != saved {
			t.Errorf("the loss is %v after loading, and was %v", got, saved)
		}
		result := learn(t, m, data, credit.CrossEntropy)
		if got := loss(); optimizer && (got != next || result.Updates != 2) || !optimizer && result.Updates != 1 {
			t.Errorf("with optimizer %v: loss %v (%v before), %d updates", optimizer, got, next, result.Updates)
		}
	}
	err = loop.LoadWeights(t.Context(), m, bare, true)
	wantError(t, "LoadWeights of an optimizer that is not stored", err, art.ErrInvalid)
	wantError(t, "LoadWeights of nothing", loop.LoadWeights(t.Context(), m, "@weights/none", false), art.ErrInvalid)
	keeper, ok := m.Backend().(loop.WeightsKeeper)
	if !ok {
		return
	}
	list, err := keeper.SavedWeights(t.Context(), m)
	if err != nil || len(list) != 2 || list[0].Path != path || !list[0].Optimizer || list[1].Optimizer {
		t.Errorf("SavedWeights: %+v, error %v", list, err)
	}
	must(t, "DeleteWeights", keeper.DeleteWeights(t.Context(), m, "bare"))
	wantError(t, "DeleteWeights again", keeper.DeleteWeights(t.Context(), m, "bare"), art.ErrInvalid)
}

// testSnapshot checks that a snapshot samples with the weights that it was made of.
func testSnapshot(t *subtest, m *art.Model) {
	s := sample(t, m, 1)
	learn(t, m, []loop.Datum{target(s)}, credit.CrossEntropy)
	path, err := loop.SaveWeights(t.Context(), m, "one", false)
	must(t, "SaveWeights", err)
	want := forward(t, m, []loop.Datum{target(s)}, credit.CrossEntropy)
	now, err := m.Snapshot(t.Context(), "")
	must(t, "Snapshot", err)
	learn(t, m, []loop.Datum{target(s)}, credit.CrossEntropy)
	stored, err := m.Snapshot(t.Context(), path)
	must(t, "Snapshot of saved weights", err)
	for name, model := range map[string]*art.Model{"of the training state": now, "of saved weights": stored} {
		if got := sample(t, model, 1); len(got.IDs) == 0 {
			t.Errorf("a snapshot %s answers nothing", name)
		}
		if sampler, ok := m.Backend().(driver.Sampler); ok && !isFake(m.Backend()) {
			ids := append(append([]int32{}, s.PromptIDs...), s.IDs...)
			logprobs, _, err := sampler.Logprobs(t.Context(), model, ids)
			must(t, "Logprobs", err)
			for i, p := range want.Logprobs[0] {
				if p != 0 && !near(float64(p), float64(logprobs[i])) {
					t.Errorf("a snapshot %s has logprob %v at %d, the training state had %v", name, logprobs[i], i, p)
				}
			}
		}
		_, err := model.Train(t.Context(), nil, nil)
		wantError(t, "Train of a snapshot", err, art.ErrFrozen)
		must(t, "Release", model.Release(t.Context()))
		_, err = model.Complete(t.Context(), ask("Still there?"), nil)
		wantError(t, "Complete after Release", err, art.ErrNotRegistered)
	}
}

// isFake reports whether the weights of a backend do not change its replies.
func isFake(b art.Backend) bool {
	_, ok := b.(interface{ Fake() })
	return ok
}

// testUnpublished checks that other trainings are refused while the training state is not published.
func testUnpublished(t *subtest, m *art.Model) {
	groups := gather(t, m, 1)
	data := []loop.Datum{target(sample(t, m, 1))}
	learn(t, m, data, credit.CrossEntropy)
	_, err := m.Train(t.Context(), groups, nil)
	wantError(t, "Train with updates that are not published", err, art.ErrInvalid)
	_, err = m.Publish(t.Context(), nil, nil)
	must(t, "Publish", err)
	_, err = m.Train(t.Context(), groups, nil)
	must(t, "Train after Publish", err)
	wantStep(t, m, 2)
	_, err = loop.ForwardBackward(t.Context(), m, data, credit.CrossEntropy, nil)
	must(t, "ForwardBackward from the new step", err)
}

func testTrainerInvalid(t *subtest, m *art.Model) {
	good := target(sample(t, m, 1))
	for name, corrupt := range map[string]func(d *loop.Datum){
		"id that the vocabulary lacks": func(d *loop.Datum) { d.Input = append([]int32{math.MaxInt32}, d.Input[1:]...) },
		"target that it lacks":         func(d *loop.Datum) { d.Targets = append([]int32{math.MaxInt32}, d.Targets[1:]...) },
		"no input":                     func(d *loop.Datum) { *d = loop.Datum{} },
	} {
		bad := good
		corrupt(&bad)
		if isFake(m.Backend()) && name != "no input" {
			continue // its vocabulary is all of int32
		}
		_, err := loop.ForwardBackward(t.Context(), m, []loop.Datum{good, bad}, credit.CrossEntropy, nil)
		wantError(t, name, err, art.ErrInvalid)
	}
	result, err := loop.OptimStep(t.Context(), m, loop.DefaultAdamW())
	if err != nil || result.GradNorm != 0 {
		t.Errorf("after calls that failed: %+v, error %v; want no gradient", result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := loop.ForwardBackward(ctx, m, []loop.Datum{good}, credit.CrossEntropy, nil); err == nil {
		t.Error("ForwardBackward with a context that has ended: no error")
	}
}
