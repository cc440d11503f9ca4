package engine

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
)

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
	defer func() {
		for _, x := range rows {
			_ = x.FinalizeAll() // nothing depends on it
		}
	}()
	in, err := r.cache.donate()
	if err != nil {
		return err
	}
	for _, x := range rows {
		in = append(in, x)
	}
	p = Program{Kind: storeProgram, Rows: p.Rows, Width: p.Width, Window: p.Window}
	if r.cache.layers, err = r.call(nil, p, storeGraph, append(in, at[rowNew:]...)); err != nil {
		return err
	}
	return nil
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
