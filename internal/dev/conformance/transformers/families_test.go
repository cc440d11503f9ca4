package transformers

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Bounds of what float32 explains: of logits relative to the largest, of gradients relative to the largest of a tensor.
const (
	closeLogits    = 2e-5
	closeGradients = 1e-3
)

// opened is a model on the device that tests run on.
type opened struct {
	device  compute.Backend
	weights *model.Weights
	params  *model.Params
}

func open(t *testing.T, dir string) *opened {
	t.Helper()
	w, err := model.Load(dir)
	require.NoError(t, err)
	return upload(t, w)
}

func upload(t *testing.T, w *model.Weights) *opened {
	t.Helper()
	m := &opened{device: graphtest.Device(t), weights: w}
	var err error
	m.params, err = w.Params(m.device)
	require.NoError(t, err)
	return m
}

// logprobs returns those of all tokens after each of some ids, [T, V].
func (m *opened) logprobs(a *engine.Adapter, ids []int32) ([]float32, error) {
	v := m.weights.Config.VocabSize
	positions, err := engine.ScoreTop(engine.Scored{
		Device: m.device, Config: m.weights.Config, Params: m.params, Adapter: a, IDs: append(slices.Clone(ids), 0),
	}, v)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(ids)*v)
	for i, candidates := range positions {
		for _, c := range candidates {
			out[i*v+int(c.ID)] = c.Logprob
		}
	}
	return out, nil
}

// adapter uploads an adapter; nil is the base model.
func (m *opened) adapter(t *testing.T, a *lora.Adapter) *engine.Adapter {
	t.Helper()
	if a == nil {
		return nil
	}
	on, err := engine.NewAdapter(m.device, m.weights.Config, m.params, a)
	require.NoError(t, err)
	return on
}

// differs returns the largest difference to recorded logits, which are those of name.
func (r *Record) differs(t *testing.T, m *opened, a *lora.Adapter, name string) (worst float64) {
	t.Helper()
	for i, ids := range r.Rows {
		got, err := m.logprobs(m.adapter(t, a), ids)
		require.NoError(t, err)
		worst = max(worst, apart(r.logits[fmt.Sprintf("%s.%d", name, i)], got, m.weights.Config.VocabSize))
	}
	return worst
}

// TestFamilies: of each configuration of each family that is built, logits, greedy replies, adapters and gradients are
// those of transformers and PEFT, these read what is written here, and sampler and trainer agree. Others are refused.
func TestFamilies(t *testing.T) {
	for _, r := range records(t, false) {
		t.Run(r.Name, func(t *testing.T) {
			_, err := model.LoadConfig(r.Dir)
			if !r.Built {
				require.Error(t, err, "it is built: say so in families.py")
				results.note(r.Family, "logits", "refused")
				return
			}
			require.NoError(t, err)
			m := open(t, r.Dir)
			r.hold(t, "logits", closeLogits, r.differs(t, m, nil, "base"))
			r.greedy(t, m)
			for _, known := range r.Adapters {
				t.Run(known.Name, func(t *testing.T) {
					if !known.Built {
						r.refused(t, m, known.Name)
						return
					}
					r.adapted(t, m, known.Name)
				})
			}
			r.full(t, m)
		})
	}
}

// hold notes a result, which may not exceed a bound.
func (r *Record) hold(t *testing.T, check string, bound, value float64) {
	t.Helper()
	results.worst(r.Family, check, value)
	require.LessOrEqual(t, value, bound, check)
}

// greedy compares the reply of the engine, which has a cache.
func (r *Record) greedy(t *testing.T, m *opened) {
	t.Helper()
	reply, err := m.engine(t).Complete(t.Context(), engine.Request{Prompt: r.Prompt, MaxTokens: len(r.Greedy)})
	require.NoError(t, err)
	require.Equal(t, r.Greedy, reply.IDs)
	results.note(r.Family, "greedy", "equal")
}

func (m *opened) engine(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Options{Device: m.device, Config: m.weights.Config, Params: m.params, Slots: 4,
		Context: 64})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

func (r *Record) adapterDir(name string) string { return filepath.Join(r.Dir, "adapters", name) }

// refused requires that an adapter is not read, or does not fit.
func (r *Record) refused(t *testing.T, m *opened, name string) {
	t.Helper()
	a, err := lora.Load(r.adapterDir(name))
	if err == nil {
		err = a.Check(m.layers())
	}
	require.Error(t, err, "it is built: say so in families.py")
	results.note(r.Family, "on "+name, "refused")
}

// layers are those that an adapter may attach to.
func (m *opened) layers() (list []lora.LayerShape) {
	for _, l := range m.weights.Config.Adaptable() {
		list = append(list, lora.LayerShape(l))
	}
	return list
}

// adapted compares an adapter that PEFT wrote.
func (r *Record) adapted(t *testing.T, m *opened, name string) {
	t.Helper()
	a, err := lora.Load(r.adapterDir(name))
	require.NoError(t, err)
	require.NoError(t, a.Check(m.layers()))
	r.hold(t, "adapters", closeLogits, r.differs(t, m, a, name))

	gradient, err := lora.Load(r.adapterDir(name) + ".gradient")
	require.NoError(t, err)
	var want [][]float32
	for _, p := range gradient.Params() {
		want = append(want, p.Data)
	}
	got := r.gradient(t, m.device, trainer.AdapterTarget(m.weights.Config, m.params, a), trainer.AdapterState(a))
	r.hold(t, "gradient of adapters", closeGradients, apartLists(t, want, got))

	if r.logits[name+".merged.0"] != nil {
		r.hold(t, "merged", closeLogits, r.differs(t, upload(t, merged(t, r.Dir, a)), nil, name+".merged"))
	}
	r.agree(t, m, a)
}

// merged returns the model of a folder with an adapter added to its weights.
func merged(t *testing.T, dir string, a *lora.Adapter) *model.Weights {
	t.Helper()
	w, err := model.Load(dir)
	require.NoError(t, err)
	for _, l := range a.Layers() {
		i := slices.IndexFunc(w.Tensors, func(x model.Tensor) bool { return x.Name == l.Name+".weight" })
		require.GreaterOrEqual(t, i, 0, l.Name)
		require.NoError(t, a.Merge(w.Tensors[i].Data, l.Name))
	}
	return w
}

// batch are the rows as record.py trains on them.
func (r *Record) batch() (batch []grpo.Sequence) {
	for i, ids := range r.Rows {
		s := grpo.Sequence{IDs: ids, Trained: make([]bool, len(ids)), Logprobs: make([]float32, len(ids)),
			Advantage: []float64{-0.5, 1.5}[i], Weight: 1, Trajectory: i}
		for j := range ids {
			s.Trained[j] = j >= 5
		}
		batch = append(batch, s)
	}
	return batch
}

// gradient returns that of a step, which is in the first moments after an update that starts with none.
func (r *Record) gradient(t *testing.T, device compute.Backend, target trainer.Target, s *trainer.State) [][]float32 {
	t.Helper()
	session, err := trainer.New(target, trainer.Options{Device: device}).Start(s)
	require.NoError(t, err)
	defer session.Free()
	_, err = session.ForwardBackward(t.Context(), r.batch(), grpo.PolicyLoss{Loss: credit.Reinforce})
	require.NoError(t, err)
	const beta = 0.5
	_, ok, err := session.Update(grpo.AdamW{Beta1: beta, Beta2: 0.9, Eps: 1}, 0)
	require.NoError(t, err)
	require.True(t, ok)
	after, err := session.State()
	require.NoError(t, err)
	for _, list := range after.M {
		for i := range list {
			list[i] /= 1 - beta
		}
	}
	return after.M
}

// apartLists returns the largest difference, relative to the largest number of a list, or to a thousandth of the
// largest of all, where a list has smaller ones.
func apartLists(t *testing.T, want, got [][]float32) (worst float64) {
	t.Helper()
	require.Len(t, got, len(want))
	largest, scales := 0.0, make([]float64, len(want))
	for i, list := range want {
		for _, x := range list {
			scales[i] = max(scales[i], math.Abs(float64(x)))
		}
		largest = max(largest, scales[i])
	}
	require.Positive(t, largest)
	for i, list := range want {
		require.Len(t, got[i], len(list))
		for j, x := range list {
			worst = max(worst, math.Abs(float64(x)-float64(got[i][j]))/max(scales[i], 1e-3*largest))
		}
	}
	return worst
}

// full compares the gradient of all weights, and what sampler and trainer compute of the base model.
func (r *Record) full(t *testing.T, m *opened) {
	t.Helper()
	gradient, err := model.Load(filepath.Join(r.Dir, "gradient"))
	require.NoError(t, err)
	state := trainer.FullState(m.weights)
	want := make([][]float32, len(state.Names))
	for i, name := range state.Names {
		at := slices.IndexFunc(gradient.Tensors, func(x model.Tensor) bool { return x.Name == name })
		require.GreaterOrEqual(t, at, 0, name)
		want[i] = gradient.Tensors[at].Data
	}
	got := r.gradient(t, m.device, trainer.FullTarget(m.weights.Config), state)
	r.hold(t, "of all weights", closeGradients, apartLists(t, want, got))
	r.agree(t, m, nil)
}

// agree requires that the trainer computes the logprobs that the engine samples with, of several requests at once: the
// same bits on the CPU device.
func (r *Record) agree(t *testing.T, m *opened, a *lora.Adapter) {
	t.Helper()
	e, on := m.engine(t), m.adapter(t, a)
	prompts := [][]int32{r.Prompt, r.Rows[0][:9], r.Rows[1][:17], r.Rows[0][:1]}
	replies, errs := make([]*engine.Result, len(prompts)), make([]error, len(prompts))
	var wg sync.WaitGroup
	for i, prompt := range prompts {
		wg.Go(func() {
			replies[i], errs[i] = e.Complete(context.Background(), engine.Request{Prompt: prompt, MaxTokens: 15 + 4*i,
				Seed: *seed + uint64(i), Adapter: on, Sampling: sampling.Settings{Temperature: 1, TopP: 1}})
		})
	}
	wg.Wait()
	var batch []grpo.Sequence
	for i, reply := range replies {
		require.NoError(t, errs[i])
		s := grpo.Sequence{IDs: slices.Concat(prompts[i], reply.IDs), Weight: 1, Trajectory: i}
		s.Trained, s.Logprobs = make([]bool, len(s.IDs)), make([]float32, len(s.IDs))
		for j := len(prompts[i]); j < len(s.IDs); j++ {
			s.Trained[j] = true
		}
		batch = append(batch, s)
	}
	target, state := trainer.FullTarget(m.weights.Config), trainer.FullState(m.weights)
	if a != nil {
		target, state = trainer.AdapterTarget(m.weights.Config, m.params, a), trainer.AdapterState(a)
	}
	trained, err := trainer.New(target, trainer.Options{Device: m.device}).Logprobs(t.Context(), state, batch, 0)
	require.NoError(t, err)
	worst := 0.0
	for i, reply := range replies {
		for j, lp := range reply.Logprobs {
			worst = max(worst, math.Abs(float64(lp)-float64(trained[i][len(prompts[i])+j])))
		}
	}
	r.hold(t, "sampler − trainer", graphtest.Rounding(), worst)
}

// TestReaders: transformers and PEFT read the models and adapters that are written here, and compute the same.
func TestReaders(t *testing.T) {
	out := t.TempDir()
	var built []*Record
	for _, r := range records(t, false) {
		if r.Built {
			built = append(built, r)
			r.write(t, filepath.Join(out, r.Name))
		}
	}
	if len(built) == 0 {
		t.Skip("no family is built")
	}
	args := []string{out}
	for _, r := range built {
		args = append(args, r.Dir)
	}
	seen := map[string]int{}
	for _, line := range lines(python(t, "read.py", args...)) {
		var found struct {
			Name, What string
			Gap        float64
		}
		decode(t, line, &found)
		i := slices.IndexFunc(built, func(r *Record) bool { return r.Name == found.Name })
		require.GreaterOrEqual(t, i, 0)
		seen[found.Name]++
		t.Run(found.Name+"/"+found.What, func(t *testing.T) {
			built[i].hold(t, "read there", closeLogits, found.Gap)
		})
	}
	for _, r := range built {
		require.GreaterOrEqual(t, seen[r.Name], 8, r.Name)
	}
}

// write saves the model, adapters like those of PEFT with other numbers, what they are merged into, and logprobs.
func (r *Record) write(t *testing.T, dir string) {
	t.Helper()
	m := open(t, r.Dir)
	v := m.weights.Config.VocabSize
	var found []safetensors.Tensor
	note := func(m *opened, a *lora.Adapter, name string) {
		for i, ids := range r.Rows {
			got, err := m.logprobs(m.adapter(t, a), ids)
			require.NoError(t, err)
			found = append(found, safetensors.NewFloat32(fmt.Sprintf("%s.%d", name, i), []int{len(ids), v}, got))
		}
	}
	sub := func(name string) string {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		return filepath.Join(dir, name)
	}
	require.NoError(t, m.weights.Save(sub("saved")))
	note(m, nil, "saved")
	for _, known := range r.Adapters {
		if !known.Built {
			continue
		}
		a, err := lora.Load(r.adapterDir(known.Name))
		require.NoError(t, err)
		var data [][]float32
		for i, p := range a.Params() {
			for j := range p.Data {
				p.Data[j] *= []float32{-1.25, 0.75, 1.5}[(i+j)%3]
			}
			data = append(data, p.Data)
		}
		require.NoError(t, a.SetParams(data))
		require.NoError(t, a.Save(sub("lora, "+known.Name), "base"))
		note(m, a, "lora, "+known.Name)
		if r.logits[known.Name+".merged.0"] != nil {
			w := merged(t, r.Dir, a)
			require.NoError(t, w.Save(sub("merged, "+known.Name)))
			note(upload(t, w), nil, "merged, "+known.Name)
		}
	}
	f, err := os.Create(filepath.Join(dir, "logprobs.safetensors"))
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, found, nil))
	require.NoError(t, f.Close())
}
