package engine

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/model"
)

// runner compiles and runs the graphs of an engine. Shape legend: W slots, B rows and T tokens of a round, V vocabulary.
type runner struct {
	opts     Options
	config   *model.Config
	params   *model.Params
	cache    *cache
	buckets  []int            // numbers of tokens that graphs are compiled for
	heights  []int            // numbers of rows
	programs map[string]*Exec // by the key of an adapter; "" is the base model
	decoders map[decodeKey]*Exec
}

// row is what a round computes for a slot.
type row struct {
	slot   int
	tokens []int32
	start  int // tokens already cached
}

func newRunner(opts Options) (*runner, error) {
	c := opts.Config
	k, err := newCache(opts.Device, c, opts.Slots, opts.Context)
	if err != nil {
		return nil, err
	}
	return &runner{
		opts: opts, config: c, params: opts.Params, cache: k,
		buckets: widths(opts.Context), heights: heights(opts), programs: map[string]*Exec{}, decoders: map[decodeKey]*Exec{},
	}, nil
}

// heights are powers of two, and the number of slots; or that alone, where graphs take long to compile.
func heights(opts Options) []int {
	var out []int
	for n := 1; n < opts.Slots && !opts.FewShapes; n *= 2 {
		out = append(out, n)
	}
	return append(out, opts.Slots)
}

// maxWidth bounds the tokens of a prompt that one round computes: a longer one takes several.
const maxWidth = 256

// widths are the numbers of tokens that graphs are compiled for: 1, 4, 8, 12, 16, 24, 32, 48, 64, 96, ...
func widths(context int) []int {
	out := []int{1, 4}
	for w := 8; w <= min(context, maxWidth); w *= 2 {
		out = append(out, w, w+w/2)
	}
	for len(out) > 1 && out[len(out)-1] > min(context, maxWidth) {
		out = out[:len(out)-1]
	}
	return out
}

// bucket returns the smallest of sizes that holds n, the largest when none does.
func bucket(sizes []int, n int) int {
	for _, size := range sizes {
		if size >= n {
			return size
		}
	}
	return sizes[len(sizes)-1]
}

// step computes a round and returns the log-softmax after the last token of each row, [B, V]. After an error nothing is
// cached.
func (r *runner) step(c class, rows []row) ([]float32, error) {
	program, err := r.program(c.adapter)
	if err != nil {
		return nil, err
	}
	in, err := r.inputs(c, rows)
	if err != nil {
		return nil, err
	}
	outputs, err := program.Call(in...)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	r.cache.layers = outputs[1:]
	defer func() { _ = outputs[0].FinalizeAll() }() // the error of the read is the one to tell
	return tensors.CopyFlatData[float32](outputs[0])
}

// inputs are weights, adapter, cache, and what the round computes.
func (r *runner) inputs(c class, rows []row) ([]any, error) {
	b, t := bucket(r.heights, len(rows)), c.width
	tokens, start, count, slots, last := make([]int32, b*t), make([]int32, b), make([]int32, b), make([]int32, b), make([]int32, b)
	for i, row := range rows {
		copy(tokens[i*t:], row.tokens)
		start[i], count[i], slots[i] = int32(row.start), int32(len(row.tokens)), int32(row.slot)
		last[i] = int32(i*t + len(row.tokens) - 1)
	}
	in, err := r.fixed(c.adapter)
	if err != nil {
		return nil, err
	}
	return append(in, tensors.FromFlatDataAndDimensions(tokens, b, t), tensors.FromFlatDataAndDimensions(start, b),
		tensors.FromFlatDataAndDimensions(count, b), tensors.FromFlatDataAndDimensions(slots, b), tensors.FromFlatDataAndDimensions(last, b, 1)), nil
}

// fixed are the inputs that all rounds begin with: weights, adapter and cache, which is given away.
func (r *runner) fixed(a *Adapter) ([]any, error) {
	layers, err := r.cache.donate()
	return append(r.weights(a), layers...), err
}

// weights are the first inputs of a graph: those of the model, and those of an adapter, if there is one.
func (r *runner) weights(a *Adapter) []any {
	var in []any
	for _, x := range r.params.Tensors {
		in = append(in, x)
	}
	if a != nil {
		for _, x := range a.inputs {
			in = append(in, x)
		}
	}
	return in
}

// program returns the graphs for adapters like a. They are compiled for a size when it first occurs.
func (r *runner) program(a *Adapter) (*Exec, error) {
	key := a.name()
	if p := r.programs[key]; p != nil {
		return p, nil
	}
	p, err := NewExec(r.opts.Device, func(in []*Node) []*Node { return r.build(a, in) })
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	p.SetMaxCache(len(r.buckets) * len(r.heights))
	r.programs[key] = p
	return p, nil
}

// build returns the log-softmax [B, V], then the cache with what is new.
func (r *runner) build(a *Adapter, in []*Node) []*Node {
	f, in := r.forward(a, in)
	layers, in := r.split(in)
	tokens, last := in[0], in[4]
	cached := &model.Cache{Start: in[1], Count: in[2], Slots: in[3]}
	for i := 0; i < len(layers); i += 2 {
		cached.Layers = append(cached.Layers, model.KV{K: layers[i], V: layers[i+1]})
	}
	hidden, next := f.Hidden(model.Input{Tokens: tokens, Cache: cached})
	hidden = Gather(Reshape(hidden, -1, r.config.HiddenSize), last)
	out := []*Node{f.LogProbs(hidden)}
	for _, kv := range next {
		out = append(out, kv.K, kv.V)
	}
	return out
}

// forward returns the model whose weights, and those of an adapter, come first in a list of inputs, and what follows them.
func (r *runner) forward(a *Adapter, in []*Node) (f *model.Forward, rest []*Node) {
	n := len(r.params.Names)
	f, rest = &model.Forward{Config: r.config, Param: r.params.Lookup(in[:n])}, in[n:]
	if a != nil {
		n = len(a.inputs)
		f.Linear, rest = a.layout.Config().Hook(a.layout.Lookup(rest[:n])), rest[n:]
	}
	return f, rest
}

// split cuts the layers of the cache from a list of inputs that begins with them.
func (r *runner) split(in []*Node) (layers, rest []*Node) {
	n := 2 * r.config.NumLayers
	return in[:n], in[n:]
}
