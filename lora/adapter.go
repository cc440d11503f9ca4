// Package lora adds small trainable matrices to the frozen linear layers of a model.
//
// A layer with weight W [Out, In] computes, instead of x·Wᵀ,
//
//	y = x·Wᵀ + Scale·(x·Aᵀ)·Bᵀ      A [Rank, In], B [Out, Rank], Scale = Alpha/Rank
//
// and only A and B are trained; [Config.Scale] has the scale of each layer. B is initialised to zero, so a new adapter
// leaves the output of the model unchanged.
//
// With DoRA (Liu et al. 2024, https://arxiv.org/abs/2402.09353) the weight is W' below, in place of V = W + Scale·B·A,
// and its magnitudes m (Out), which begin as the norms of the rows of W, are trained too:
//
//	W'[o] = m[o]·V[o] / ‖V[o]‖
//
// The package knows nothing of models: it is given the names and sizes of layers ([New]), provides hooks that are
// called for each of them while a graph is built ([Adapter.Hooks]), reads and writes the files of Hugging Face's PEFT
// ([Load], [Adapter.Save]), and merges adapters into weights ([Adapter.Merge]).
//
// There are two layouts. In memory and on disk A and B are PEFT's, as above. In graphs they are transposed, A [In,
// Rank] and B [Rank, Out], so that neither matmul needs a transpose; [Adapter.Params] and [Adapter.SetParams] convert.
//
// Source: Hu et al. 2021, https://arxiv.org/abs/2106.09685.
package lora

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/brief"
)

// LayerShape is a linear layer of a model, or its embedding.
type LayerShape struct {
	Name    string // in full: "model.layers.0.self_attn.q_proj"
	In, Out int
	// Embedding says that it looks up one of In rows of Out numbers, in place of multiplying.
	Embedding bool
}

// Layer is the adapter of one linear layer, in PEFT's layout.
type Layer struct {
	LayerShape
	A []float32 // [R, In] row-major, with R the rank of the layer
	B []float32 // [Out, R] row-major
	// Magnitude is [Out] with DoRA, and otherwise nil.
	Magnitude []float32
}

func (l *Layer) rank() int { return len(l.A) / l.In }

// Adapter holds the adapters of the layers of one model, sorted by name.
type Adapter struct {
	config Config
	layers []Layer
	chosen *selection // of a PEFT file, if Targets alone do not determine the layers; otherwise nil. It is immutable
}

// New returns an adapter for those of the given layers that the configuration chooses, with
//
//	A ~ uniform(-1/sqrt(In), 1/sqrt(In)),  B = 0                  of linear layers
//	A = 0,  B ~ normal(0, 1)                                      of an embedding
//
// which is PEFT's initialisation (kaiming_uniform_ with a = sqrt(5)). The values of a layer depend on seed, its name
// and its sizes alone, not on the other layers. A target that matches no layer is an error, and so is a pattern of
// Ranks or Alphas that matches none of the chosen ones; without targets, the default ones that the model has are used.
// A rank above that of any possible B·A is an error too. The magnitudes of DoRA are NaN: they need the weights of the
// base model, see [Adapter.InitMagnitudes].
func New(cfg Config, layers []LayerShape, seed uint64) (*Adapter, error) {
	chosen, err := cfg.Select(layers)
	if err != nil {
		return nil, err
	}
	a := &Adapter{}
	if cfg.Pattern != "" {
		if a.chosen, err = patternSelection(cfg.Pattern); err != nil {
			return nil, err
		}
		cfg.Pattern, cfg.Targets = "", lastNames(chosen)
	} else if len(cfg.Targets) == 0 {
		cfg.Targets = TargetsOf(layers)
	}
	if a.chosen == nil {
		if a.chosen, err = beside(cfg.Targets, chosen); err != nil {
			return nil, err
		}
	}
	if a.config, err = cfg.resolve(names(chosen)); err != nil {
		return nil, fmt.Errorf("lora: %w", err)
	}
	if err := checkRank(a.config, chosen); err != nil {
		return nil, err
	}
	for _, shape := range chosen {
		layer := newLayer(shape, a.config.LayerRank(shape.Name), seed)
		if cfg.DoRA {
			layer.Magnitude = slices.Repeat([]float32{float32(math.NaN())}, shape.Out)
		}
		a.layers = append(a.layers, layer)
	}
	a.sort()
	return a, nil
}

// textModel precedes the names of layers of a text model that is a part of another model.
const textModel = "model.language_model."

// beside returns a selection for PEFT of the layers with these last name parts, which leaves out those of other parts
// of the model, such as one that reads images; nil where there are none.
func beside(targets []string, layers []LayerShape) (*selection, error) {
	if !slices.ContainsFunc(layers, func(l LayerShape) bool { return strings.HasPrefix(l.Name, textModel) }) {
		return nil, nil
	}
	parts := make([]string, len(targets))
	for i, target := range targets {
		parts[i] = regexp.QuoteMeta(target)
	}
	return patternSelection("(" + regexp.QuoteMeta(textModel) + `.*\.)?(` + strings.Join(parts, "|") + ")")
}

// Select returns those of some layers that get an adapter.
func (c Config) Select(layers []LayerShape) (chosen []LayerShape, err error) {
	if err := errors.Join(c.Validate(), validateShapes(layers)); err != nil {
		return nil, err
	}
	if chosen, err = c.choose(layers); err != nil {
		return nil, err
	}
	return chosen, errors.Join(checkMatches("ranks", c.Ranks, chosen), checkMatches("alphas", c.Alphas, chosen))
}

func (c Config) choose(layers []LayerShape) (chosen []LayerShape, err error) {
	if c.Pattern != "" {
		return selectByPattern(c.Pattern, layers)
	}
	if len(c.Targets) == 0 {
		c.Targets = TargetsOf(layers)
	}
	c = c.withDefaults()
	parts := lastNames(layers)
	var errs []error
	for _, target := range c.Targets {
		if !slices.Contains(parts, target) {
			errs = append(errs, fmt.Errorf("lora: no layer is called %q; the model has %s", target, brief.Names(parts)))
		}
	}
	if err := brief.Errors(errs); err != nil {
		return nil, err
	}
	for _, shape := range layers {
		if slices.Contains(c.Targets, lastPart(shape.Name)) {
			chosen = append(chosen, shape)
		}
	}
	return chosen, nil
}

// TargetsOf returns those of the default targets that some layers have, or layers that hold several of them in one.
func TargetsOf(layers []LayerShape) []string {
	there := lastNames(layers)
	all := append(DefaultTargets(), "qkv_proj", "gate_up_proj", "input_linear", "output_linear")
	return slices.DeleteFunc(all, func(target string) bool { return !slices.Contains(there, target) })
}

func newLayer(shape LayerShape, rank int, seed uint64) Layer {
	hash := fnv.New64a()
	hash.Write([]byte(shape.Name))
	src := rand.New(rand.NewPCG(seed, hash.Sum64()))
	bound := 1 / math.Sqrt(float64(shape.In))
	l := Layer{LayerShape: shape, A: make([]float32, rank*shape.In), B: make([]float32, shape.Out*rank)}
	if shape.Embedding {
		for i := range l.B {
			l.B[i] = float32(src.NormFloat64())
		}
		return l
	}
	for i := range l.A {
		l.A[i] = float32((2*src.Float64() - 1) * bound)
	}
	return l
}

// Config returns the configuration, defaults filled in.
func (a *Adapter) Config() Config { return a.config.withDefaults() }

// LayoutKey is equal for adapters of equal configuration and layers on the same model: they have equal graphs.
func (a *Adapter) LayoutKey() string {
	var b strings.Builder
	c := a.Config()
	c.resolved = nil // it follows from the rest, and is printed as an address
	fmt.Fprintf(&b, "%+v", c)
	for _, l := range a.layers {
		b.WriteString(" " + l.Name)
	}
	return b.String()
}

// Layers returns the adapted layers, sorted by name. Slices are not copied.
func (a *Adapter) Layers() []Layer { return slices.Clone(a.layers) }

// Layer returns the adapter of a layer. ok is false when the layer has none.
func (a *Adapter) Layer(name string) (layer Layer, ok bool) {
	i, ok := a.find(name)
	if !ok {
		return Layer{}, false
	}
	return a.layers[i], true
}

func (a *Adapter) shapes() []LayerShape {
	list := make([]LayerShape, len(a.layers))
	for i, l := range a.layers {
		list[i] = l.LayerShape
	}
	return list
}

// NumParams returns the number of parameters.
func (a *Adapter) NumParams() int {
	n := 0
	for _, l := range a.layers {
		n += len(l.A) + len(l.B) + len(l.Magnitude)
	}
	return n
}

// Clone returns a deep copy.
func (a *Adapter) Clone() *Adapter {
	c := &Adapter{config: a.Config(), layers: a.Layers(), chosen: a.chosen}
	for i := range c.layers {
		l := &c.layers[i]
		l.A, l.B, l.Magnitude = slices.Clone(l.A), slices.Clone(l.B), slices.Clone(l.Magnitude)
	}
	return c
}

// Of returns the part of the adapter that belongs to some layers. Matrices are not copied.
func (a *Adapter) Of(has func(layer string) bool) *Adapter {
	part := &Adapter{config: a.Config(), chosen: a.chosen, layers: a.Layers()}
	part.layers = slices.DeleteFunc(part.layers, func(l Layer) bool { return !has(l.Name) })
	return part
}

// Check reports the layers of the adapter that a model with the given layers lacks, or has in another size.
func (a *Adapter) Check(layers []LayerShape) error {
	byName := map[string]LayerShape{}
	for _, shape := range layers {
		byName[shape.Name] = shape
	}
	var errs []error
	var unknown []string
	for _, l := range a.layers {
		switch shape, ok := byName[l.Name]; {
		case !ok:
			unknown = append(unknown, strconv.Quote(l.Name))
		case shape != l.LayerShape:
			errs = append(errs, fmt.Errorf("lora: layer %q is %d to %d in the adapter and %d to %d in the model",
				l.Name, l.In, l.Out, shape.In, shape.Out))
		}
	}
	if len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("lora: the model has no layer %s that an adapter may attach to; it has %s",
			brief.Names(unknown), brief.Names(lastNames(layers))))
	}
	return brief.Errors(errs)
}

func (a *Adapter) sort() {
	slices.SortFunc(a.layers, func(x, y Layer) int { return strings.Compare(x.Name, y.Name) })
}

func (a *Adapter) find(name string) (int, bool) {
	return slices.BinarySearchFunc(a.layers, name, func(l Layer, name string) int { return strings.Compare(l.Name, name) })
}

// validateShapes reports layers without size or name, and names that occur twice.
func validateShapes(layers []LayerShape) error {
	var errs []error
	seen := map[string]bool{}
	for _, shape := range layers {
		if shape.Name == "" || shape.In <= 0 || shape.Out <= 0 {
			errs = append(errs, fmt.Errorf("lora: layer %q is %d to %d", shape.Name, shape.In, shape.Out))
		}
		if seen[shape.Name] {
			errs = append(errs, fmt.Errorf("lora: layer %q is listed twice", shape.Name))
		}
		seen[shape.Name] = true
	}
	return brief.Errors(errs)
}

// checkMatches reports patterns that match none of the layers that get an adapter: they would have no effect.
func checkMatches[T any](what string, patterns map[string]T, chosen []LayerShape) error {
	var errs []error
	watch := startStopwatch()
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		p, err := layerPattern(text)
		matches := false
		for i := 0; i < len(chosen) && !matches && err == nil; i++ {
			matches, err = p.MatchString(chosen[i].Name)
			err = watch.check(err)
		}
		switch {
		case err != nil:
			return fmt.Errorf("lora: pattern %q of %s: %w", brief.Text(text), what, err)
		case !matches:
			errs = append(errs, fmt.Errorf("lora: pattern %q of %s matches no layer of the adapter, whose names end in %s",
				brief.Text(text), what, brief.Names(lastNames(chosen))))
		}
	}
	return brief.Errors(errs)
}

// smallRank is allowed for layers of any size.
const smallRank = 64

// checkRank bounds the rank, and with it memory. The rank of B·A is at most min(In, Out).
func checkRank(cfg Config, chosen []LayerShape) error {
	most := smallRank
	for _, shape := range chosen {
		most = max(most, min(shape.In, shape.Out))
	}
	for _, rank := range append(slices.Collect(maps.Values(cfg.Ranks)), cfg.Rank) {
		if rank > most {
			return fmt.Errorf("lora: rank is %d, and no layer has more than %d inputs or outputs: want 1 to %d", rank, most,
				most)
		}
	}
	return nil
}

func names(layers []LayerShape) []string {
	list := make([]string, len(layers))
	for i, l := range layers {
		list[i] = l.Name
	}
	return list
}

// lastNames returns the last parts of the names of layers, sorted, each once.
func lastNames(layers []LayerShape) []string {
	var parts []string
	for _, shape := range layers {
		parts = append(parts, lastPart(shape.Name))
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}
