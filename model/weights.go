package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
)

// Tensor is a named array of a checkpoint, row-major, in the shape in which it is stored.
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
// 1/sqrt(in) (LeCun), the two that write into the residual stream divided by sqrt(2 x layers) (GPT-2's); norms multiply
// by one, and biases are zero. A tensor depends on the seed, its name, its shape and the number of layers alone.
func Random(c *Config, seed uint64) (*Weights, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := &Weights{Config: c}
	for _, t := range c.tensors() {
		data := make([]float32, t.size())
		switch {
		case t.bias:
		case len(t.Shape) == 1:
			for i := range data {
				data[i] = float32(1 - t.offset)
			}
		default:
			h := fnv.New64a()
			h.Write([]byte(t.Name))
			std := 1 / math.Sqrt(float64(t.Shape[1]))
			if t.joins {
				std /= math.Sqrt(2 * float64(c.NumLayers))
			}
			rng := rand.New(rand.NewPCG(seed, h.Sum64()))
			for i := range data {
				data[i] = float32(rng.NormFloat64() * std)
			}
		}
		w.Tensors = append(w.Tensors, Tensor{Name: t.Name, Shape: t.Shape, Data: data})
	}
	return w, nil
}

// check reports tensors that are missing, unknown or of another shape than the configuration requires.
func (w *Weights) check() error {
	specs := w.Config.Specs()
	if len(specs) != len(w.Tensors) {
		return fmt.Errorf("model: %d tensors, the configuration requires %d", len(w.Tensors), len(specs))
	}
	for i, s := range specs {
		t := w.Tensors[i]
		if t.Name != s.Name || !slices.Equal(t.Shape, s.Shape) || len(t.Data) != s.size() {
			return fmt.Errorf("model: tensor %d is %s %v with %d values, the configuration requires %s %v", i, t.Name, t.Shape,
				len(t.Data), s.Name, s.Shape)
		}
	}
	return nil
}

// Params are the weights on a device: an ordered list of inputs of a graph, in the shapes of the checkpoint.
type Params struct {
	Names   []string
	Tensors []*tensors.Tensor

	matrices dtypes.DType // type of the matrices that add uploads
	rounds   bool         // products with quantized ones round activations
}

// Params copies the weights to the device, packed if the device can do that. Graphs may use them in matmuls and gather
// rows of the embedding, but cannot train them.
func (w *Weights) Params(device compute.Backend) (*Params, error) {
	return w.ParamsAs(device, dtypes.Float32)
}

// ParamsAs is Params with matrices of another type: Float32, BFloat16, to which they are rounded, or Int8. Of these
// each row has a scale in float32, its largest element divided by 127, and each element is the nearest multiple of that
// (LLM.int8(), Dettmers et al. 2022, whose outliers are not kept apart). Their scales are parameters too, which
// [Params.Names] has after the matrix. A device that cannot multiply them is an error.
func (w *Weights) ParamsAs(device compute.Backend, matrices dtypes.DType) (*Params, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	p, err := newParams(device, matrices)
	if err != nil {
		return nil, err
	}
	for _, t := range w.Tensors {
		if err := p.add(device, t.Name, t.Shape, func(dst []float32, first int) { copy(dst, t.Data[first:]) }); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Rounded returns the weights as [Weights.ParamsAs] has them on a device: a copy whose matrices are rounded.
func (w *Weights) Rounded(matrices dtypes.DType) *Weights {
	out := &Weights{Config: w.Config, Tensors: slices.Clone(w.Tensors)}
	for i, t := range out.Tensors {
		if len(t.Shape) != 2 || matrices == dtypes.Float32 {
			continue
		}
		data := slices.Clone(t.Data)
		if matrices == dtypes.Int8 {
			for row := range slices.Chunk(data, t.Shape[1]) {
				graphx.RoundInt8(row)
			}
		} else {
			for j, v := range data {
				data[j] = bfloat16.FromFloat32(v).Float32()
			}
		}
		out.Tensors[i].Data = data
	}
	return out
}

// Stored is the type of matrices that are kept as a checkpoint holds them, where the device can do that:
// the blocks of a GGUF file on the CPU device, which multiplies by the float32 numbers that they stand for, and
// bfloat16. Others are float32.
const Stored = dtypes.InvalidDType

func newParams(device compute.Backend, matrices dtypes.DType) (*Params, error) {
	if matrices == dtypes.BFloat16 && !graphx.MultipliesBFloat16(device) {
		return nil, fmt.Errorf("model: device %q does not multiply bfloat16 matrices; "+
			"use float32, the CPU device or one of XLA", device.Name())
	}
	if matrices == dtypes.Int8 && !graphx.ComputesBFloat16(device) {
		return nil, fmt.Errorf("model: device %q does not multiply int8 matrices; use float32, bfloat16 or a device of XLA",
			device.Name())
	}
	if matrices != dtypes.Float32 && matrices != dtypes.BFloat16 && matrices != dtypes.Int8 && matrices != Stored {
		return nil, fmt.Errorf("model: matrices of %s: want %s, %s or %s", matrices, dtypes.Float32, dtypes.BFloat16,
			dtypes.Int8)
	}
	return &Params{matrices: matrices}, nil
}

// add copies a tensor to the device. read fills dst with elements from element first on.
func (p *Params) add(device compute.Backend, name string, shape []int, read func(dst []float32, first int)) error {
	var x, scales *tensors.Tensor
	var err error
	switch {
	case len(shape) == 2 && p.matrices == dtypes.Int8:
		x, scales, err = graphx.UploadInt8(device, shape[0], shape[1],
			func(dst []float32, row int) { read(dst, row*shape[1]) })
	case len(shape) == 2:
		x, err = graphx.UploadMatrix(device, p.matrices, shape[0], shape[1],
			func(dst []float32, row int) { read(dst, row*shape[1]) })
	default:
		data := make([]float32, Spec{Shape: shape}.size())
		read(data, 0)
		x, err = graphx.Upload(device, data, shape...)
	}
	if err != nil {
		return fmt.Errorf("model: %s: %w", name, err)
	}
	p.Names, p.Tensors = append(p.Names, name), append(p.Tensors, x)
	if scales != nil {
		p.Names, p.Tensors = append(p.Names, name+scaleSuffix), append(p.Tensors, scales)
	}
	return nil
}

// SetParam replaces the values of a tensor by a copy of data, which is in its shape. An unknown name, or
// another number of values, is an error, and changes nothing.
func (w *Weights) SetParam(name string, data []float32) error {
	i := slices.IndexFunc(w.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("model: no tensor %q", name)
	}
	if len(data) != len(w.Tensors[i].Data) {
		return fmt.Errorf("model: %s: %d values, want %d", name, len(data), len(w.Tensors[i].Data))
	}
	copy(w.Tensors[i].Data, data)
	return nil
}

// Weight returns the weight of a layer that [Config.Adaptable] lists, nil where there is none. That of the head may be
// the embedding's.
func (p *Params) Weight(c *Config, layer string) *tensors.Tensor {
	name := layer + weightSuffix
	if layer == headLayer && c.TieEmbeddings {
		name = c.root() + embedName + weightSuffix
	}
	i := slices.Index(p.Names, name)
	if i < 0 {
		return nil
	}
	return p.Tensors[i]
}

// Lookup returns the Param function of [Forward] over nodes that are in the order of p.
func (p *Params) Lookup(nodes []*graph.Node) func(name string) *graph.Node {
	byName := make(map[string]*graph.Node, len(p.Names))
	for i, name := range p.Names {
		byName[name] = nodes[i]
	}
	return func(name string) *graph.Node { return byName[name] }
}
