package local

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// policy is what is trained of a model, at one step: an adapter, or all weights. One of the fields is set, and what it
// points to does not change.
type policy struct {
	adapter *lora.Adapter
	weights *model.Weights
}

// full reports whether all weights are trained.
func (p policy) full() bool { return p.weights != nil }

// target is what the trainer is given.
func (p policy) target(s *base) trainer.Target {
	if p.full() {
		return trainer.FullTarget(s.config)
	}
	return trainer.AdapterTarget(s.config, s.params, p.adapter)
}

// begin returns the state from which a policy is trained with a new optimizer, and the policy; all weights then share
// their memory with the state.
func (p policy) begin() (policy, *trainer.State, error) {
	if !p.full() {
		return p, trainer.AdapterState(p.adapter), nil
	}
	state := trainer.FullState(p.weights)
	p, err := p.with(state.Params)
	return p, state, err
}

// with returns a policy of the same shape with the parameters of a state. All weights share their memory.
func (p policy) with(params [][]float32) (policy, error) {
	if !p.full() {
		a := p.adapter.Clone()
		return policy{adapter: a}, a.SetParams(params)
	}
	if len(params) != len(p.weights.Tensors) {
		return policy{}, fmt.Errorf("%d tensors, want %d", len(params), len(p.weights.Tensors))
	}
	w := &model.Weights{Config: p.weights.Config}
	for i, t := range p.weights.Tensors {
		w.Tensors = append(w.Tensors, model.Tensor{Name: t.Name, Shape: t.Shape, Data: params[i]})
	}
	return policy{weights: w}, nil
}

// upload returns what samples from a policy.
func (p policy) upload(s *base) (*engine.Adapter, error) {
	if p.full() {
		return s.engine.NewWeights(p.weights)
	}
	return s.engine.NewAdapter(p.adapter)
}

// save writes a policy into a folder: an adapter in the form of PEFT, or a model with its tokenizer, which is a base
// model for others. name is that of the base, where this does not name the checkpoint that it was made from.
func (p policy) save(dir string, s *base, name string) error {
	if !p.full() {
		return p.adapter.Save(dir, cmp.Or(s.original, name))
	}
	c := *p.weights.Config
	c.TorchDType = model.Float32
	w := model.Weights{Config: &c, Tensors: p.weights.Tensors}
	return errors.Join(w.Save(dir), basemodel.ExportTokenizer(s.path, dir))
}

// isFull reports whether a folder has all weights, and not an adapter.
func isFull(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, model.ConfigFile))
	return err == nil
}

// readPolicy reads what save has written, or an adapter of PEFT.
func readPolicy(dir string, s *base) (policy, error) {
	if !isFull(dir) {
		a, err := lora.Load(dir)
		if err == nil {
			err = a.Check(layersOf(s.config))
		}
		return policy{adapter: a}, err
	}
	w, err := model.Load(dir)
	if err != nil {
		return policy{}, err
	}
	if !reflect.DeepEqual(w.Config.Specs(), s.config.Specs()) {
		return policy{}, fmt.Errorf("%s has weights of other shapes than the base model", dir)
	}
	w.Config = s.config
	return policy{weights: w}, nil
}

// baseWeights reads all weights of a base model again: the host keeps none.
func baseWeights(s *base) (p policy, err error) {
	open, err := basemodel.Open(s.path)
	if err != nil {
		return policy{}, err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	w := open.Weights()
	w.Config = s.config
	return policy{weights: w}, nil
}

// baseState returns the parameters of a policy that is the base model, of the shapes of a state.
func (p policy) baseState(t *trainer.Trainer, s *base, state *trainer.State) (*trainer.State, error) {
	if !p.full() {
		return t.BaseState(state)
	}
	first, err := baseWeights(s)
	if err != nil {
		return nil, err
	}
	return trainer.FullState(first.weights), nil
}

// shape is equal for policies of the same base whose states can replace one another.
func (p policy) shape() string {
	if p.full() {
		return "all weights"
	}
	var shape strings.Builder
	fmt.Fprintln(&shape, p.adapter.Config().DoRA)
	for _, l := range p.adapter.Layers() {
		fmt.Fprintln(&shape, l.LayerShape, p.adapter.Config().LayerRank(l.Name), p.adapter.Config().Scale(l.Name))
	}
	return shape.String()
}

// digest returns the SHA-256 of the values of a policy. It does not depend on the path or the format of its files.
func (p policy) digest() string {
	if !p.full() {
		return adapterDigest(p.adapter)
	}
	h := sha256.New()
	for _, t := range p.weights.Tensors {
		fmt.Fprintf(h, "%q %v\n", t.Name, t.Shape)
		hashFloats(h, t.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// checkFull refuses a training of all weights that does not fit into free memory, or whose sampler would round them.
func (b *Backend) checkFull(s *base) error {
	if s.matrices != dtypes.Float32 {
		return invalid("register", `set Weights of local.Options to "float32", or leave it empty; or train an adapter`,
			"all weights are trained in float32, and sampled from as they are: not with Weights %q", s.weights)
	}
	if takes, free, ok := b.memory.Holds(plan.TrainingOf(s.config, nil)); !ok {
		return invalid("register", "train an adapter: leave Full of ModelOptions out", "a training of all weights takes at "+
			"least %s beside the base model; %s are free", gigabytes(takes), gigabytes(free))
	}
	return nil
}

// adapterStart is what a run starts from: the adapter of a folder, or a step of another run. The zero value is none.
type adapterStart struct {
	policy     policy
	digest     string // see policy.digest
	checkpoint string // of a fork: its folder, which has the optimizer too
}

// openStart reads the adapter in opts. have is the description of the run, or the zero value for a new one: a run can
// continue when the folder of its adapter, or the run that it is a fork of, is gone, with the digest that it recorded.
func (b *Backend) openStart(opts art.ModelOptions, have, want description, s *base) (adapterStart, error) {
	switch {
	case opts.Fork != "" && opts.Fork == have.Fork:
		return adapterStart{digest: have.AdapterSHA256}, nil
	case opts.Fork != "":
		return b.openFork(opts, want, s)
	case opts.Adapter == "":
		return adapterStart{}, nil
	}
	a, err := lora.Load(opts.Adapter)
	if err == nil {
		return adapterStart{policy: policy{adapter: a}, digest: adapterDigest(a)}, nil
	}
	if opts.Adapter == have.Adapter {
		return adapterStart{digest: have.AdapterSHA256}, nil
	}
	return adapterStart{}, adapterError(err)
}

// openFork reads the step of a run that a new one begins with.
func (b *Backend) openFork(opts art.ModelOptions, want description, s *base) (adapterStart, error) {
	ref, err := runs.ParseReference(opts.Fork, opts.Project)
	if err != nil {
		return adapterStart{}, err
	}
	source, err := runs.NewReader(ref.Dir(b.opts.Dir))
	if err != nil {
		return adapterStart{}, err
	}
	var have description
	if err := source.Model(&have); err != nil {
		return adapterStart{}, err
	}
	if !have.sameBase(want) {
		return adapterStart{}, invalid("register", "a fork keeps the base model: set Base to it",
			"%s has the base %s, and the fork %s", ref, have.baseText(), want.baseText())
	}
	dir, err := source.Find(ref.Step)
	if err != nil {
		return adapterStart{}, err
	}
	p, err := readPolicy(dir, s)
	if err != nil {
		return adapterStart{}, checkpointError("register", dir, err)
	}
	return adapterStart{p, p.digest(), dir}, nil
}

// adapterError is the error for an adapter from which a run cannot start.
func adapterError(err error) error {
	return invalid("register", "set ModelOptions.Adapter to the folder of a LoRA adapter of this base model", "%w", err)
}

// adapterDigest returns the SHA-256 of the values of an adapter: its rank, its alpha and the tensors of its layers. It
// does not depend on the path or the format of its files.
func adapterDigest(a *lora.Adapter) string {
	h := sha256.New()
	c := a.Config()
	fmt.Fprintf(h, "rank %d alpha %v\n", c.Rank, c.Alpha)
	if c.RankStabilized || len(c.Ranks)+len(c.Alphas) > 0 {
		fmt.Fprintf(h, "stabilized %v ranks %v alphas %v\n", c.RankStabilized, c.Ranks, c.Alphas)
	}
	if c.DoRA {
		fmt.Fprintln(h, "dora")
	}
	byText := lora.Config{Rank: c.Rank, Alpha: c.Alpha, RankStabilized: c.RankStabilized, Ranks: c.Ranks, Alphas: c.Alphas}
	for _, l := range a.Layers() {
		if scale := c.Scale(l.Name); scale != byText.Scale(l.Name) { // by the order of a file
			fmt.Fprintf(h, "scale %v\n", scale)
		}
		fmt.Fprintf(h, "%q %d %d\n", l.Name, l.In, l.Out)
		hashFloats(h, l.A)
		hashFloats(h, l.B)
		hashFloats(h, l.Magnitude)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashFloats(h hash.Hash, values []float32) {
	_ = binary.Write(h, binary.LittleEndian, values) // a hash never fails
}
