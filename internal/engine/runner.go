package engine

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/model"
)

// runner compiles and runs the graphs of an engine. Shape legend: W slots, B rows and T tokens of a round, M blocks of
// a row, V vocabulary.
type runner struct {
	opts     Options
	config   *model.Config
	params   *model.Params
	cache    *cache
	widths   schedule.Sizes // numbers of tokens that graphs are compiled for
	heights  schedule.Sizes // numbers of rows
	windows  schedule.Sizes // numbers of tokens of a row that are cached
	programs map[roundKey]*Exec
	decoders map[decodeKey]*Exec
	storing  *Exec     // stores what loops over rows have computed; nil before the first
	logprobs []float32 // of the last round, whose memory is used again: megabytes in each
}

// roundKey says which graph computes a round.
type roundKey struct {
	adapter string // its key; "" is the base model
	fresh   bool   // all rows begin with the first token, see model.Cache
}

func newRunner(opts Options) (*runner, error) {
	k, err := newCache(opts)
	if err != nil {
		return nil, err
	}
	return &runner{
		opts: opts, config: opts.Config, params: opts.Params, cache: k,
		widths: widths(opts), heights: heights(opts), windows: windows(opts),
		programs: map[roundKey]*Exec{}, decoders: map[decodeKey]*Exec{},
	}, nil
}

// scores are what a round computes after the last token of each row.
type scores struct {
	logprobs   []float32 // log-softmax [B, V]
	normalizer []float32 // what the softmax has taken from the logits [B]
}

// row returns the logprobs of a row, whose vocabulary has v tokens, and its normalizer.
func (s scores) row(i, v int) (logprobs []float32, normalizer float32) {
	return s.logprobs[i*v : (i+1)*v], s.normalizer[i]
}

// step computes a round. Its scores are valid until the next one. After an error the cache is lost.
func (r *runner) step(a *Adapter, round schedule.Round) (s scores, err error) {
	window := r.window(round)
	program, err := r.program(a, window == 0)
	if err != nil {
		return s, err
	}
	in, err := r.inputs(a, round, window)
	if err != nil {
		return s, err
	}
	outputs, err := program.Call(in...)
	if err != nil {
		return s, fmt.Errorf("engine: %w", err)
	}
	r.cache.layers = outputs[2:]
	defer func() {
		for _, x := range outputs[:2] {
			_ = x.FinalizeAll() // an error of the read is the one to report
		}
	}()
	err = tensors.ConstFlatData(outputs[0], func(flat []float32) { r.logprobs = append(r.logprobs[:0], flat...) })
	if err != nil {
		return s, err
	}
	s.logprobs = r.logprobs
	s.normalizer, err = tensors.CopyFlatData[float32](outputs[1])
	return s, err
}

// window returns how many cached tokens the rows of a round may attend to; 0 where all of them begin with their first
// token, and the device would copy the cached ones to attend to them.
func (r *runner) window(round schedule.Round) int {
	start, end := 0, 0
	for _, row := range round.Rows {
		start, end = max(start, row.Start), max(end, row.Start+len(row.Tokens))
	}
	if r.opts.FewShapes && start == 0 && round.Width > 1 {
		return 0
	}
	return r.windows.Fit(end)
}

// inputs returns weights, adapter, cache, and what the round computes.
func (r *runner) inputs(a *Adapter, round schedule.Round, window int) ([]any, error) {
	b, t := r.heights.Fit(len(round.Rows)), round.Width
	tokens, last := make([]int32, b*t), make([]int32, b)
	start, count, blocks := make([]int32, b), make([]int32, b), make([][]int32, b)
	for i, row := range round.Rows {
		copy(tokens[i*t:], row.Tokens)
		start[i], count[i], blocks[i] = int32(row.Start), int32(len(row.Tokens)), row.Blocks
		last[i] = int32(i*t + len(row.Tokens) - 1)
	}
	in, err := r.fixed(a)
	if err != nil {
		return nil, err
	}
	return append(in, tensors.FromFlatDataAndDimensions(tokens, b, t), tensors.FromFlatDataAndDimensions(start, b),
		tensors.FromFlatDataAndDimensions(count, b), table(blocks, b, stored(window, t)),
		tensors.FromFlatDataAndDimensions(last, b, 1)), nil
}

// stored returns how many tokens the blocks of a row hold in a round: those of the window, or of the round if it is 0.
func stored(window, width int) int {
	if window == 0 {
		return (width + BlockTokens - 1) / BlockTokens * BlockTokens
	}
	return window
}

// fixed returns the inputs that all rounds begin with: weights, adapter and the cache, which is donated.
func (r *runner) fixed(a *Adapter) ([]any, error) {
	layers, err := r.cache.donate()
	return append(r.weights(a), layers...), err
}

// weights returns the first inputs of a graph: the weights of the model, then the tensors of the adapter, if there is
// one.
func (r *runner) weights(a *Adapter) []any {
	var in []any
	params := r.params
	if a != nil && a.weights != nil {
		params = a.weights
	}
	for _, x := range params.Tensors {
		in = append(in, x)
	}
	if a != nil {
		for _, x := range a.inputs {
			in = append(in, x)
		}
	}
	return in
}

// program returns the graphs of rounds for adapters with the key of a. They are compiled for a shape when it first
// occurs.
func (r *runner) program(a *Adapter, fresh bool) (*Exec, error) {
	key := roundKey{a.name(), fresh}
	if p := r.programs[key]; p != nil {
		return p, nil
	}
	p, err := NewExec(r.opts.Device, func(in []*Node) []*Node { return r.build(a, in, fresh) })
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	p.SetMaxCache(len(r.widths) * len(r.heights) * len(r.windows))
	r.programs[key] = p
	return p, nil
}

// build returns the log-softmax [B, V], its normalizer [B, 1], then the updated cache.
func (r *runner) build(a *Adapter, in []*Node, fresh bool) []*Node {
	f, in := r.forward(a, in)
	layers, in := r.split(in)
	tokens, last := in[0], in[4]
	cached := &model.Cache{Start: in[1], Count: in[2], Fresh: fresh, Blocks: in[3], Layers: kvOf(layers)}
	hidden, next := f.Hidden(model.Input{Tokens: tokens, Cache: cached})
	hidden = Gather(Reshape(hidden, -1, r.config.HiddenSize), last)
	logprobs, normalizer := f.Normalized(hidden)
	out := []*Node{logprobs, normalizer}
	for _, kv := range next {
		out = append(out, kv.K, kv.V)
	}
	return out
}

// forward returns the model, with its adapter, whose weights a list of inputs begins with, and the rest of the list.
func (r *runner) forward(a *Adapter, in []*Node) (f *model.Forward, rest []*Node) {
	n := len(r.params.Names)
	f, rest = &model.Forward{Config: r.config, Param: r.params.Lookup(in[:n])}, in[n:]
	if a != nil && a.layout != nil {
		n = len(a.inputs)
		a.hooks(f, rest[:n])
		rest = rest[n:]
	}
	return f, rest
}

// split separates the cache, with which a list of inputs begins, from the rest.
func (r *runner) split(in []*Node) (layers, rest []*Node) {
	n := 2 * r.config.NumLayers
	return in[:n], in[n:]
}
