package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/model"
)

// Shape legend: W slots, Z groups of them, N steps, E end ids, M blocks of a slot, V vocabulary.

// decoding builds the graph of a call.
type decoding struct {
	runner  *runner
	adapter *Adapter
	cuts    sampling.Cuts
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
	s := sampling.Sampler{
		Uniform:     Reshape(sampling.At(in[atUniform], column), w),
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
	loop[atLogprobs] = write(in[atLogprobs], Reshape(sampling.At(lp, Reshape(id, w, 1)), w))
	loop[atSampled] = write(in[atSampled], reshaped)
	return next
}

// A loop reads all keys and values of its rows for each token. XLA has no operation that reads them in their blocks:
// it would copy them for each token, and read and write three times what it needs. So a call copies them once, to rows
// that its loop reads and extends, and a second graph stores the new ones in their blocks. The host says where all is:
// go-xla cannot have scalars or scatters in a closure and around it.
//
// Rows are as long as the window of the call, whatever they hold. Where they would take more memory than the
// cache, blocks are copied for each token, those of one layer at a time. What requests share of their beginning, the
// replies of a group their prompt, is copied and read once for all of them: see decodePlan.

// rowInputs are the inputs of a loop over rows that follow its state, the first one, and of the graph that stores them.
const rowInputs = 4

const (
	rowBlocks = iota // [W K M, 1] int32: the blocks of each row and head, of all heads
	rowNew           // [W, K, N, 3] int32: slot, head and position of new tokens
	rowPlaces        // [W, K, N, 3] int32: head, block and place in it where they are stored
	rowLow           // float32: minus infinity
)

// copiesRows reports whether a loop copies keys and values once for a call.
func copiesRows(opts Options, p Program) bool {
	return !graphx.ProfileOf(opts.Device).FusedAttention && p.hasRoom(opts.shapes().Blocks)
}

// hasRoom reports whether what a loop copies takes no more memory than a cache of so many blocks.
func (p Program) hasRoom(blocks int) bool { return p.rowTokens() <= blocks*blockTokens }

// rowTokens is the number of tokens whose keys and values a loop copies, and then reads for each token.
func (p Program) rowTokens() int { return p.Rows*p.Window + p.Groups*p.Prefix }

// rowsAt returns the inputs. Tokens that are not sampled are stored as the last one, and those of slots that do nothing
// where they came from.
func (r *runner) rowsAt(plan decodePlan) []any {
	w, n, k, m, p := plan.Rows, r.opts.DecodeSteps, r.config.NumKVHeads, plan.Window/blockTokens, r.shapes.Blocks
	var from, of, to []int32
	for i, c := range plan.calls {
		common := plan.commonOf(i)
		block := func(at int) int32 {
			if at += common / blockTokens; at < len(c.blocks) {
				return c.blocks[at]
			}
			return 0
		}
		for head := range k {
			for at := range m {
				from = append(from, int32(head*p)+block(at))
			}
			for j := range n {
				at := min(c.start-common+min(j, max(c.count-1, 0)), plan.Window-1)
				of = append(of, int32(i), int32(head), int32(at))
				to = append(to, int32(head), block(at/blockTokens), int32(at%blockTokens))
			}
		}
	}
	return []any{
		tensors.FromFlatDataAndDimensions(from, w*k*m, 1), tensors.FromFlatDataAndDimensions(of, w, k, n, 3),
		tensors.FromFlatDataAndDimensions(to, w, k, n, 3), tensors.FromScalar(float32(math.Inf(-1))),
	}
}

// loadRows builds the rows [W, K, S, E] of keys or values [K, P, C, E].
func loadRows(cached, blocks *Node, slots int) *Node {
	d := cached.Shape().Dimensions
	return Reshape(Gather(Reshape(cached, d[0]*d[1], d[2], d[3]), blocks), slots, d[0], -1, d[3])
}

// store stores the new keys and values of rows, which are lost. After an error the cache is lost too.
func (r *runner) store(p Program, rows []*tensors.Tensor, at []any) error {
	defer finalize(rows)
	in, err := r.cache.donate()
	if err != nil {
		return err
	}
	for _, x := range rows {
		in = append(in, x)
	}
	p = Program{Kind: storeProgram, Rows: p.Rows, Width: p.Width, Window: p.Window}
	r.cache.layers, err = r.call(nil, p, storeGraph, append(in, at[rowNew:]...))
	return err
}

// storeGraph builds store: the cache, of which what was there is replaced: minus infinity is the smaller, and a new
// number the greater one.
func storeGraph(in []*Node) []*Node {
	at := in[len(in)-rowInputs+rowNew:]
	from, to, low := at[0], at[1], at[2]
	n := (len(in) - len(at)) / 2
	out := make([]*Node, n)
	for i, cached := range in[:n] {
		fresh := Gather(in[n+i], from)
		low := BroadcastToDims(ConvertDType(low, fresh.DType()), fresh.Shape().Dimensions...)
		out[i] = ScatterMax(ScatterMin(cached, to, low, false, false), to, fresh, false, false)
	}
	return out
}

// prefixesAt returns the inputs of a loop whose rows share prefixes: the tokens of each [Z] int32, and the blocks of
// each prefix and head, of all heads [Z K P, 1] int32.
func (r *runner) prefixesAt(plan decodePlan) []any {
	var blocks, counts []int32
	for group, tokens := range plan.common {
		own := plan.calls[group*(plan.Rows/plan.Groups)].blocks[:tokens/blockTokens]
		counts = append(counts, int32(tokens))
		for head := range r.config.NumKVHeads {
			for at := range plan.Prefix / blockTokens {
				block := int32(head * r.shapes.Blocks)
				if at < len(own) {
					block += own[at]
				}
				blocks = append(blocks, block)
			}
		}
	}
	return []any{
		tensors.FromFlatDataAndDimensions(counts, len(counts)), tensors.FromFlatDataAndDimensions(blocks, len(blocks), 1),
	}
}
