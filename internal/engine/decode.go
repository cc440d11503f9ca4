package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/model"
)

// A device with loops makes many tokens of each slot in one call: it computes a token, draws the next one, and goes on until
// all slots are done or the call has made its number of steps. Where a slot ends is seen there as far as it can be told from
// ids and counts; stop texts, and more end ids than maxEnds, the host finds when it goes through what was drawn, and drops
// what lies behind.

// maxEnds is the number of end ids of a request that a call looks for.
const maxEnds = 8

// noToken is no id of any vocabulary.
const noToken = -1

// turn is what a call does for one slot. The zero turn does nothing.
type turn struct {
	token    int32 // to compute first
	start    int   // tokens already cached
	left     int   // tokens to draw at most
	ends     []int32
	sampling model.Sampling
	uniform  []float64 // one for each token to draw
}

// draw is a token that a call has drawn.
type draw struct {
	id               int32
	logprob, sampled float32
}

// decodeKey names a graph: adapters of one key share it, and it sees the first window tokens of the cache.
type decodeKey struct {
	adapter   string
	truncates bool
	window    int
}

// windows are the numbers of cached tokens that decoding is compiled for: powers of two, and the context.
func windows(context int) []int {
	var out []int
	for n := 256; n < context; n *= 2 {
		out = append(out, n)
	}
	return append(out, context)
}

// decode runs a call: turns has one entry for each slot. It returns what was drawn for each. After an error nothing is cached.
func (r *runner) decode(a *Adapter, turns []turn) ([][]draw, error) {
	last := 0
	for _, t := range turns {
		last = max(last, t.start+t.left)
	}
	more, truncates := r.turnInputs(turns)
	key := decodeKey{adapter: a.name(), truncates: truncates, window: bucket(windows(r.opts.Context), last)}
	program, err := r.decoder(key, a)
	if err != nil {
		return nil, err
	}
	in, err := r.fixed(a)
	if err != nil {
		return nil, err
	}
	out, err := program.Call(append(in, more...)...)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	r.cache.layers = out[4:]
	return readDraws(out[:4], r.opts.DecodeSteps)
}

// turnInputs are what the loop begins with, behind the cache, in the order of its state.
func (r *runner) turnInputs(turns []turn) (in []any, truncates bool) {
	w, n := len(turns), r.opts.DecodeSteps
	token, start, left := make([]int32, w), make([]int32, w), make([]int32, w)
	ends, uniform, sampling := make([]int32, w*maxEnds), make([]float64, w*n), make([]model.Sampling, w)
	for i := range ends {
		ends[i] = noToken
	}
	for i, t := range turns {
		token[i], start[i], left[i], sampling[i] = t.token, int32(t.start), int32(t.left), t.sampling
		copy(ends[i*maxEnds:(i+1)*maxEnds], t.ends)
		copy(uniform[i*n:], t.uniform)
	}
	temperature, topP, topK, truncates := model.SamplerInputs(sampling)
	return []any{
		tensors.FromFlatDataAndDimensions(token, w), tensors.FromFlatDataAndDimensions(start, w), tensors.FromFlatDataAndDimensions(left, w),
		tensors.FromFlatDataAndDimensions(ends, w, maxEnds), tensors.FromFlatDataAndDimensions(uniform, w, n),
		tensors.FromFlatDataAndDimensions(temperature, w), tensors.FromFlatDataAndDimensions(topP, w), tensors.FromFlatDataAndDimensions(topK, w),
		tensors.FromScalar(int32(0)), tensors.FromScalar(int32(1)), tensors.FromFlatDataAndDimensions(make([]int32, w*n), w, n),
		tensors.FromFlatDataAndDimensions(make([]float32, w*n), w, n), tensors.FromFlatDataAndDimensions(make([]float32, w*n), w, n),
	}, truncates
}

// readDraws takes counts [W], ids, logprobs and reshaped logprobs [W, N] from the device.
func readDraws(out []*tensors.Tensor, n int) (draws [][]draw, err error) {
	defer func() {
		for _, x := range out {
			_ = x.FinalizeAll() // on a device that fails, the error of the read is the one to tell
		}
	}()
	counts, err := tensors.CopyFlatData[int32](out[0])
	if err != nil {
		return nil, err
	}
	ids, err := tensors.CopyFlatData[int32](out[1])
	if err != nil {
		return nil, err
	}
	logprobs, err := tensors.CopyFlatData[float32](out[2])
	if err != nil {
		return nil, err
	}
	sampled, err := tensors.CopyFlatData[float32](out[3])
	if err != nil {
		return nil, err
	}
	draws = make([][]draw, len(counts))
	for i, count := range counts {
		for j := i * n; j < i*n+int(count); j++ {
			draws[i] = append(draws[i], draw{ids[j], logprobs[j], sampled[j]})
		}
	}
	return draws, nil
}

// decoder returns a graph of many steps. It is compiled when it is first called.
func (r *runner) decoder(key decodeKey, a *Adapter) (*Exec, error) {
	if p := r.decoders[key]; p != nil {
		return p, nil
	}
	d := &decoding{runner: r, adapter: a, window: key.window, truncates: key.truncates, repeat: while}
	if r.opts.unroll {
		d.repeat = unrolled(r.opts.DecodeSteps)
	}
	p, err := NewExec(r.opts.Device, d.build)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	r.decoders[key] = p
	return p, nil
}

// Shape legend: W slots, N steps, E end ids, K key/value heads, S tokens of the cache, V vocabulary.

// decoding builds the graph of a call.
type decoding struct {
	runner    *runner
	adapter   *Adapter
	window    int
	truncates bool
	repeat    func(more, step func(state []*Node) []*Node, state []*Node) []*Node
}

// The state of the loop are all inputs: weights, adapter, cache, and from there on what follows. go-xla does not let a closure
// compute with what lies outside.
const (
	atToken       = iota // [W] int32: to compute next
	atStart              // [W] int32: tokens cached
	atLeft               // [W] int32: tokens to draw
	atEnds               // [W, E] int32
	atUniform            // [W, N] float64
	atTemperature        // [W] float64
	atTopP               // [W] float64
	atTopK               // [W] int32
	atStep               // int32: the number of the step
	atMore               // int32: above 0 while a slot has tokens to draw
	atIDs                // [W, N] int32: what was drawn
	atLogprobs           // [W, N] float32
	atSampled            // [W, N] float32
)

// split returns the three parts of the state, which share its memory.
func (d *decoding) split(state []*Node) (fixed, layers, turn []*Node) {
	n := len(d.runner.params.Names)
	if d.adapter != nil {
		n += len(d.adapter.inputs)
	}
	behind := n + 2*d.runner.config.NumLayers
	return state[:n], state[n:behind], state[behind:]
}

// build returns the number of tokens drawn [W], the tokens [W, N], their logprobs and those under the reshaped distribution, and the
// cache, whose first window tokens the loop carries.
func (d *decoding) build(in []*Node) []*Node {
	state := slices.Clone(in)
	_, whole, begin := d.split(in)
	_, layers, _ := d.split(state)
	for i, x := range layers {
		layers[i] = Slice(x, AxisRange(), AxisRange(), AxisRange(0, d.window))
	}
	_, layers, end := d.split(d.repeat(d.more, d.step, state))
	out := []*Node{Sub(end[atStart], begin[atStart]), end[atIDs], end[atLogprobs], end[atSampled]}
	for i, x := range whole {
		if s := x.Shape().Dim(2); d.window < s {
			x = Concatenate([]*Node{layers[i], Slice(x, AxisRange(), AxisRange(), AxisRange(d.window, s))}, 2)
		} else {
			x = layers[i]
		}
		out = append(out, x)
	}
	return out
}

// while builds a loop. GoMLX and go-xla keep scalars and sums for the whole graph, also those that were made in a closure: only
// one of its closures may use any, and no loop may stand in it.
func while(more, step func(state []*Node) []*Node, state []*Node) []*Node {
	g := state[0].Graph()
	closure := func(f func(state []*Node) []*Node) *Function {
		return NewClosure(g, func(g *Graph) []*Node {
			in := make([]*Node, len(state))
			for i, x := range state {
				in[i] = Parameter(g, fmt.Sprintf("state%d", i), x.Shape())
			}
			return f(in)
		})
	}
	return While(closure(more), closure(step), state...)
}

// unrolled builds n steps one after another: those of slots that are done change nothing.
func unrolled(n int) func(_, step func(state []*Node) []*Node, state []*Node) []*Node {
	return func(_, step func(state []*Node) []*Node, state []*Node) []*Node {
		for range n {
			state = step(state)
		}
		return state
	}
}

// more is the condition of the loop.
func (d *decoding) more(state []*Node) []*Node {
	_, _, in := d.split(state)
	return []*Node{ConvertDType(in[atMore], dtypes.Bool)}
}

// step computes one token of each slot that has tokens left to draw, and draws the next.
func (d *decoding) step(state []*Node) []*Node {
	f, in := d.runner.forward(d.adapter, state)
	layers, in := d.runner.split(in)
	w, c := in[atToken].Shape().Dim(0), d.runner.config
	active := GreaterThan(in[atLeft], ZerosLike(in[atLeft]))
	count := ConvertDType(active, dtypes.Int32)
	past := &model.Cache{Start: in[atStart], Count: count}
	for i := 0; i < len(layers); i += 2 {
		past.Layers = append(past.Layers, model.KV{K: layers[i], V: layers[i+1]})
	}
	hidden, cache := f.Hidden(model.Input{Tokens: Reshape(in[atToken], w, 1), Cache: past})
	lp := f.LogProbs(Reshape(hidden, w, c.HiddenSize))

	column := BroadcastToDims(Reshape(in[atStep], 1, 1), w, 1)
	s := model.Sampler{
		Uniform:     Reshape(model.At(in[atUniform], column), w),
		Temperature: in[atTemperature], TopP: in[atTopP], TopK: in[atTopK], Truncates: d.truncates,
	}
	id, reshaped := s.Draw(lp)
	write := func(to, x *Node) *Node {
		dims := to.Shape().Dimensions
		here := Equal(Iota(to.Graph(), shapeI32(dims...), 1), BroadcastToDims(column, dims...))
		here = LogicalAnd(here, BroadcastToDims(Reshape(active, w, 1), dims...))
		return Where(here, BroadcastToDims(Reshape(x, w, 1), dims...), to)
	}
	isEnd := Equal(in[atEnds], BroadcastToDims(Reshape(id, w, 1), in[atEnds].Shape().Dimensions...))
	ended := ConvertDType(ReduceMax(ConvertDType(isEnd, dtypes.Int32), -1), dtypes.Bool)

	next := slices.Clone(state)
	_, layers, turn := d.split(next)
	for i, kv := range cache {
		layers[2*i], layers[2*i+1] = kv.K, kv.V
	}
	turn[atToken] = Where(active, id, in[atToken])
	turn[atStart] = Add(in[atStart], count)
	turn[atLeft] = Where(ended, ZerosLike(count), Sub(in[atLeft], count))
	turn[atStep] = OnePlus(in[atStep])
	turn[atMore] = ReduceAllMax(turn[atLeft])
	turn[atIDs] = write(in[atIDs], id)
	turn[atLogprobs] = write(in[atLogprobs], Reshape(model.At(lp, Reshape(id, w, 1)), w))
	turn[atSampled] = write(in[atSampled], reshaped)
	return next
}

// checkLoops refuses a device without loops, when they are asked for.
func checkLoops(device compute.Backend, steps int) error {
	if steps > 1 && !device.Capabilities().Functions {
		return fmt.Errorf("engine: %d tokens a call: device %q has no loops; ask for 1, or use a device of XLA", steps, device.Name())
	}
	return nil
}
