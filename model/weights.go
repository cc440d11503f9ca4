package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
)

// Tensor is a named array of a checkpoint, row-major, in the shape that it is stored in.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Weights are a checkpoint in host memory.
type Weights struct {
	Config  *Config
	Tensors []Tensor // in the order of Config.Specs
}

// Random draws weights for c: linear layers and the embedding from a normal distribution of standard deviation
// 1/sqrt(in) (LeCun), the two that write into the residual stream divided by sqrt(2 x layers) (GPT-2's), norms one. A
// tensor depends on the seed, its name, its shape and the number of layers alone.
func Random(c *Config, seed uint64) (*Weights, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := &Weights{Config: c}
	for _, s := range c.Specs() {
		data := make([]float32, s.size())
		fill(data, s, c.NumLayers, seed)
		w.Tensors = append(w.Tensors, Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	return w, nil
}

func fill(data []float32, s Spec, layers int, seed uint64) {
	if len(s.Shape) == 1 {
		for i := range data {
			data[i] = 1
		}
		return
	}
	h := fnv.New64a()
	h.Write([]byte(s.Name))
	std := 1 / math.Sqrt(float64(s.Shape[1]))
	if name := s.Name; strings.HasSuffix(name, "o_proj.weight") || strings.HasSuffix(name, "down_proj.weight") {
		std /= math.Sqrt(2 * float64(layers))
	}
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	for i := range data {
		data[i] = float32(rng.NormFloat64() * std)
	}
}

// check reports tensors that are missing, unknown or of another shape than the configuration asks for.
func (w *Weights) check() error {
	specs := w.Config.Specs()
	if len(specs) != len(w.Tensors) {
		return fmt.Errorf("model: %d tensors, the configuration asks for %d", len(w.Tensors), len(specs))
	}
	for i, s := range specs {
		t := w.Tensors[i]
		if t.Name != s.Name || !slices.Equal(t.Shape, s.Shape) || len(t.Data) != s.size() {
			return fmt.Errorf("model: tensor %d is %s %v with %d values, the configuration asks for %s %v", i, t.Name, t.Shape, len(t.Data), s.Name, s.Shape)
		}
	}
	return nil
}

// Params are the weights on a device, as the graph takes them: an ordered list of inputs. Linear layers are transposed
// to [in, out].
type Params struct {
	Names   []string
	Tensors []*tensors.Tensor
}

// Params copies the weights to the device. With head, a tied embedding is also given transposed, as the output head: the
// fast layout, at the price of a second copy. Without, the graph transposes the embedding itself, so that a gradient
// reaches it from both of its uses.
func (w *Weights) Params(device compute.Backend, head bool) (*Params, error) {
	p := &Params{}
	add := func(name string, data []float32, shape ...int) error {
		t, err := graphx.Upload(device, data, shape...)
		p.Names, p.Tensors = append(p.Names, name), append(p.Tensors, t)
		return err
	}
	err := w.GraphValues(func(s Spec, data []float32) error { return add(s.Name, data, s.GraphShape()...) })
	if err == nil && head && w.Config.TieEmbeddings {
		v, d := w.Config.VocabSize, w.Config.HiddenSize
		err = add(headName, transpose(w.Tensors[0].Data, v, d), d, v)
	}
	if err != nil {
		return nil, fmt.Errorf("model: weights: %w", err)
	}
	return p, nil
}

// GraphValues calls f with each tensor as the graph takes it, of shape [in, out] for a linear layer.
func (w *Weights) GraphValues(f func(s Spec, data []float32) error) error {
	if err := w.check(); err != nil {
		return err
	}
	for i, s := range w.Config.Specs() {
		data := w.Tensors[i].Data
		if s.Linear {
			data = transpose(data, s.Shape[0], s.Shape[1])
		}
		if err := f(s, data); err != nil {
			return err
		}
	}
	return nil
}

// SetParam takes a weight back from the form of the graph.
func (w *Weights) SetParam(name string, data []float32) error {
	for i, s := range w.Config.Specs() {
		if s.Name != name {
			continue
		}
		if len(data) != s.size() {
			return fmt.Errorf("model: %s: %d values, want %d", name, len(data), s.size())
		}
		if s.Linear {
			data = transpose(data, s.Shape[1], s.Shape[0])
		}
		copy(w.Tensors[i].Data, data)
		return nil
	}
	return fmt.Errorf("model: no tensor %q", name)
}

// transpose returns the transpose of a row-major [rows, cols] matrix.
func transpose(x []float32, rows, cols int) []float32 {
	y := make([]float32, len(x))
	for r := range rows {
		for c := range cols {
			y[c*rows+r] = x[r*cols+c]
		}
	}
	return y
}

// Lookup returns the Param function of [Forward] over nodes that are in the order of p.
func (p *Params) Lookup(nodes []*graph.Node) func(name string) *graph.Node {
	byName := make(map[string]*graph.Node, len(p.Names))
	for i, name := range p.Names {
		byName[name] = nodes[i]
	}
	return func(name string) *graph.Node { return byName[name] }
}
