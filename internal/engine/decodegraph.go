package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/model"
)

// Shape legend: W slots, Z groups of them, N steps, E end ids, M blocks of a slot, V vocabulary.

// decoding builds the graph of a call.
type decoding struct {
	runner  *runner
	adapter *Adapter
	cuts    model.Cuts
	rows    bool // the loop reads rows in place of blocks
	prefix  bool // and what groups of rows have in common
	repeat  func(more, step func(state []*Node) []*Node, state []*Node) []*Node
}

// The state of the loop is all inputs: weights, adapter, cache, and then the values below. go-xla does not support
// closures that use values from outside.
const (
	atToken       = iota // [W] int32: to compute next
	atStart              // [W] int32: tokens in the cache
	atLeft               // [W] int32: tokens to sample
	atBlocks             // [W, M] int32
	atEnds               // [W, E] int32
	atUniform            // [W, N] float64
	atTemperature        // [W] float64
	atTopP               // [W] float64
	atTopK               // [W] int32
	atStep               // int32: the number of the step
	atMore               // int32: above 0 while a slot has tokens to sample
	atIDs                // [W, N] int32: sampled
	atLogprobs           // [W, N] float32
	atSampled            // [W, N] float32
	atCommon             // [Z] int32: tokens that a group has in common; their keys and values follow, as the cache's
)

// split returns the three parts of the state, which share its memory.
func (d *decoding) split(state []*Node) (fixed, layers, loop []*Node) {
	n := len(d.runner.params.Names)
	if d.adapter != nil {
		n += len(d.adapter.inputs)
	}
	behind := n + 2*d.runner.config.NumLayers
	return state[:n], state[n:behind], state[behind:]
}

// build returns the number of sampled tokens [W], the tokens [W, N], their logprobs under the model and under the
// reshaped distribution, the number of steps that the loop has made, and the cache, or the rows.
func (d *decoding) build(in []*Node) []*Node {
	var blocks, common, shared *Node
	if d.prefix {
		in, common, shared = in[:len(in)-2], in[len(in)-2], in[len(in)-1]
	}
	if d.rows {
		in, blocks = in[:len(in)-1], in[len(in)-1]
	}
	state := slices.Clone(in)
	_, carried, begin := d.split(state)
	cached := slices.Clone(carried)
	if d.rows {
		for i, x := range cached {
			carried[i] = loadRows(x, blocks, begin[atToken].Shape().Dim(0))
		}
	}
	if d.prefix {
		state = append(state, common)
		for _, x := range cached {
			state = append(state, loadRows(x, shared, common.Shape().Dim(0)))
		}
	}
	_, layers, end := d.split(d.repeat(d.more, d.step, state))
	samples := []*Node{Sub(end[atStart], begin[atStart]), end[atIDs], end[atLogprobs], end[atSampled], end[atStep]}
	return append(samples, layers...)
}

// while builds a loop. GoMLX and go-xla reuse scalars and sums in the whole graph, also those that were created in a
// closure: only one closure of a loop may use any, and loops cannot be nested.
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

// unrolled builds n steps in a row. Steps of slots that are done change nothing.
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

// step computes one token of each slot that has tokens left to sample, and samples the next.
func (d *decoding) step(state []*Node) []*Node {
	f, in := d.runner.forward(d.adapter, state)
	layers, in := d.runner.split(in)
	w, c := in[atToken].Shape().Dim(0), d.runner.config
	active := GreaterThan(in[atLeft], ZerosLike(in[atLeft]))
	count := ConvertDType(active, dtypes.Int32)
	past := &model.Cache{Start: in[atStart], Count: count, Layers: kvOf(layers)}
	if !d.rows {
		past.Blocks = in[atBlocks]
	}
	if d.prefix {
		past.Prefix = &model.Prefix{Count: in[atCommon], Layers: kvOf(in[atCommon+1:])}
	}
	hidden, cache := f.Hidden(model.Input{Tokens: Reshape(in[atToken], w, 1), Cache: past})
	lp := f.LogProbs(Reshape(hidden, w, c.HiddenSize))

	column := BroadcastToDims(Reshape(in[atStep], 1, 1), w, 1)
	s := model.Sampler{
		Uniform:     Reshape(model.At(in[atUniform], column), w),
		Temperature: in[atTemperature], TopP: in[atTopP], TopK: in[atTopK], Cuts: d.cuts,
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
	_, layers, loop := d.split(next)
	for i, kv := range cache {
		layers[2*i], layers[2*i+1] = kv.K, kv.V
	}
	loop[atToken] = Where(active, id, in[atToken])
	loop[atStart] = Add(in[atStart], count)
	loop[atLeft] = Where(ended, ZerosLike(count), Sub(in[atLeft], count))
	loop[atStep] = OnePlus(in[atStep])
	loop[atMore] = ReduceAllMax(loop[atLeft])
	loop[atIDs] = write(in[atIDs], id)
	loop[atLogprobs] = write(in[atLogprobs], Reshape(model.At(lp, Reshape(id, w, 1)), w))
	loop[atSampled] = write(in[atSampled], reshaped)
	return next
}
