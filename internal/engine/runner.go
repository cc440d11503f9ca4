package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// runner compiles and runs the graphs of an engine. Shape legend: W slots, B rows and T tokens of a round, M blocks of
// a row, V vocabulary.
type runner struct {
	opts     Options
	config   *model.Config
	params   *model.Params // weights, and tables of RoPE that the graphs share
	cache    *cache
	shapes   plan.Shapes
	programs *graphx.Programs
	logprobs []float32 // of the last round, whose memory is used again: megabytes in each
}

// programKey names a compiled graph: adapters of one layout share it.
type programKey struct {
	adapter string // its key; "" is the base model
	Program
}

// finalize frees tensors. An error of a call or of a read is the one to report.
func finalize(list []*tensors.Tensor) {
	for _, x := range list {
		_ = x.FinalizeAll()
	}
}

// read copies a tensor to the host, unless there is an error already.
func read[T float32 | int32](x *tensors.Tensor, err *error) (flat []T) {
	if *err == nil {
		flat, *err = tensors.CopyFlatData[T](x)
	}
	return flat
}

func newRunner(opts Options) (*runner, error) {
	k := &cache{device: opts.Device, shape: cacheShape(opts)}
	if err := k.clear(opts.Config.NumLayers); err != nil {
		return nil, err
	}
	programs, shapes := opts.ProgramBytes, opts.shapes()
	switch {
	case programs > 0:
	case opts.FewShapes || !graphx.ProfileOf(opts.Device).FusedAttention:
		programs = graphx.RoomFor(MostPrograms(opts)) // all that some layouts need: to compile one again takes seconds
	default:
		programs = int64(opts.sampling().Memory().Programs)
	}
	tables, err := opts.Config.RopeTables(opts.Device, shapes.Positions)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	params := &model.Params{
		Names:   slices.Concat(opts.Params.Names, tables.Names),
		Tensors: slices.Concat(opts.Params.Tensors, tables.Tensors),
	}
	return &runner{
		opts: opts, config: opts.Config, params: params, cache: k, shapes: shapes,
		programs: graphx.NewPrograms(opts.Device, programs),
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
	p := Program{
		Kind: PromptProgram, Rows: r.shapes.Heights.Fit(len(round.Rows)), Width: round.Width, Window: r.window(round),
	}
	in, err := r.inputs(a, round, p)
	if err != nil {
		return s, err
	}
	outputs, err := r.round(a, p, in)
	if err != nil {
		return s, err
	}
	r.cache.layers = outputs[2:]
	defer finalize(outputs[:2])
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
	return windowsOf(r.shapes, r.opts.FewShapes, round.Width).Fit(end)
}

// windowsOf returns the windows of rounds of so many tokens per row. A device that takes long to compile copies the
// whole window of each row in every round, and a reply needs many rounds of one token: they have the windows of
// decoding.
func windowsOf(s plan.Shapes, fewShapes bool, width int) schedule.Sizes {
	if fewShapes && width == 1 {
		return s.DecodeWindows
	}
	return s.Windows
}

// inputs returns weights, adapter, cache, and what the round computes.
func (r *runner) inputs(a *Adapter, round schedule.Round, p Program) ([]any, error) {
	b, t := p.Rows, p.Width
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
		tensors.FromFlatDataAndDimensions(count, b), table(blocks, b, stored(p.Window, t)),
		tensors.FromFlatDataAndDimensions(last, b, 1)), nil
}

// stored returns how many tokens the blocks of a row hold in a round: those of the window, or of the round if it is 0.
func stored(window, width int) int {
	if window == 0 {
		return (width + blockTokens - 1) / blockTokens * blockTokens
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
	list := r.params.Tensors
	if a != nil && a.weights != nil {
		own := a.weights.Tensors
		list = slices.Concat(own, list[len(own):])
	}
	for _, x := range list {
		in = append(in, x)
	}
	if a != nil {
		for _, x := range a.inputs {
			in = append(in, x)
		}
	}
	return in
}

// round runs the graph of a round.
func (r *runner) round(a *Adapter, p Program, in []any) ([]*tensors.Tensor, error) {
	return r.call(a, p, func(in []*Node) []*Node { return r.build(a, in, p.Window == 0) }, in)
}

// call runs a program, which is compiled when it is first needed.
func (r *runner) call(a *Adapter, p Program, build func(in []*Node) []*Node, in []any) ([]*tensors.Tensor, error) {
	out, err := r.programs.Call(programKey{a.name(), p}, build, in)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return out, nil
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
		in, norms := rest[:len(a.inputs)], len(a.inputs)-a.layout.NumNorms()
		f.Linear, f.Embedding = a.layout.Hooks(lora.Nodes{Trained: in[:norms], Norms: in[norms:], Bias: f.Bias})
		rest = rest[len(in):]
	}
	return f, rest
}

// split separates the cache, with which a list of inputs begins, from the rest.
func (r *runner) split(in []*Node) (layers, rest []*Node) {
	n := 2 * r.config.NumLayers
	return in[:n], in[n:]
}

// blockTokens is the number of tokens of a block of the KV cache.
const blockTokens = plan.BlockTokens

// cache is the KV cache of all sequences on the device: for each layer a pair of tensors [K, P, C, E], for K KV heads,
// P blocks of C tokens, and head size E. Package schedule says which blocks a sequence has. Block 0 is zero.
//
// Graphs take them as donated inputs and return the updated ones, so that a device can write in place.
type cache struct {
	device compute.Backend
	shape  shapes.Shape      // [K, P, C, E]
	layers []*tensors.Tensor // keys and values of each layer, alternating; nil after a graph that had them failed
	broken error             // why layers could not be set to zero when this was last tried
}

// cacheShape returns the shape of the keys or values of a layer.
func cacheShape(opts Options) shapes.Shape {
	return shapes.Make(opts.CacheType, opts.Config.NumKVHeads, opts.shapes().Blocks, blockTokens, opts.Config.HeadDim)
}

// clear sets the cache to zero.
func (k *cache) clear(layers int) error {
	finalize(k.layers)
	if k.layers, k.broken = graphx.ZeroTensors(k.device, k.shape, 2*layers); k.broken != nil {
		return fmt.Errorf("engine: cache: %w", k.broken)
	}
	return nil
}

// donate returns the tensors as inputs of a graph. The caller sets layers to the updated ones that the graph returns.
func (k *cache) donate() ([]any, error) {
	if k.layers == nil {
		return nil, fmt.Errorf("engine: the cache was lost, and cannot be made again: %w", k.broken)
	}
	in, err := graphx.Donate(k.device, k.layers)
	if err != nil {
		return nil, fmt.Errorf("engine: cache: %w", err)
	}
	k.layers = nil
	return in, nil
}

// read returns the tensors as inputs of a graph that does not change them.
func (k *cache) read() ([]any, error) {
	if k.layers == nil {
		return nil, fmt.Errorf("engine: the cache was lost, and cannot be made again: %w", k.broken)
	}
	in := make([]any, len(k.layers))
	for i, x := range k.layers {
		in[i] = x
	}
	return in, nil
}

// copyBlock copies block from of the cache to block to.
func (r *runner) copyBlock(from, to int32) error {
	in, err := r.cache.donate()
	if err != nil {
		return err
	}
	in = append(in, tensors.FromScalar(from), tensors.FromScalar(to))
	out, err := r.call(nil, Program{Kind: copyProgram}, r.cache.copyGraph, in)
	if err != nil {
		return err
	}
	r.cache.layers = out
	return nil
}

// copyGraph builds copyBlock.
func (k *cache) copyGraph(in []*Node) []*Node {
	layers, from, to := in[:len(in)-2], in[len(in)-2], in[len(in)-1]
	zero := ZerosLike(from)
	sizes := slices.Clone(k.shape.Dimensions)
	sizes[1] = 1
	out := make([]*Node, len(layers))
	for i, x := range layers {
		block := DynamicSlice(x, []*Node{zero, from, zero, zero}, sizes)
		out[i] = DynamicUpdateSlice(x, block, []*Node{zero, to, zero, zero})
	}
	return out
}

// kvOf returns the cache of each layer, of keys and values in turns.
func kvOf(layers []*Node) (list []model.KV) {
	for i := 0; i < len(layers); i += 2 {
		list = append(list, model.KV{K: layers[i], V: layers[i+1]})
	}
	return list
}

// table is the blocks of the rows of a round [B, M].
func table(rows [][]int32, height, window int) *tensors.Tensor {
	m := window / blockTokens
	flat := make([]int32, height*m)
	for i, blocks := range rows {
		copy(flat[i*m:(i+1)*m], blocks)
	}
	return tensors.FromFlatDataAndDimensions(flat, height, m)
}

func shapeF32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
