package engine

import (
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/sampling"
)

// A device with loops decodes many tokens of each slot in one call: it computes a token, samples the next one, and goes
// on until all slots are done or the call has made its number of steps. The device ends a slot by count and by the
// first maxEnds end ids. All other ends are found by the host, which discards the tokens that follow.

// maxEnds is the number of end ids of a request that the device looks for.
const maxEnds = 8

// noToken is not an id of any vocabulary.
const noToken = -1

// decodeCall is what a call does for one row. The zero value does nothing.
type decodeCall struct {
	token    int32 // to compute first
	start    int   // tokens in the cache
	blocks   []int32
	count    int // tokens to sample at most
	ends     []int32
	sampling sampling.Settings
	uniform  []float64 // random numbers, one for each token to sample
}

// sampled is what a call has made: the tokens of each row, in a number of steps.
type sampled struct {
	tokens [][]Token
	steps  int
	shared bool // the rows had something in common that was read once
}

// decode runs calls, and some that do nothing where there is no graph of their number. After an error the cache is
// lost.
func (r *runner) decode(a *Adapter, calls []decodeCall) (s sampled, err error) {
	plan := planDecode(r.opts, calls)
	var state []any
	state, plan.Cuts = r.decodeInputs(plan.calls, plan.Window)
	out, err := r.decodeTo(a, plan, state)
	if err != nil {
		return s, err
	}
	if s, err = readSamples(out, r.opts.DecodeSteps); err != nil {
		return s, err
	}
	s.tokens, s.shared = plan.inOrder(s.tokens), plan.Prefix > 0
	return s, nil
}

// decodeTo runs a loop, and returns what it has sampled.
func (r *runner) decodeTo(a *Adapter, plan decodePlan, state []any) ([]*tensors.Tensor, error) {
	p, rows := plan.Program, copiesRows(r.opts, plan.Program)
	read, at := r.cache.donate, []any(nil)
	if rows {
		read, at = r.cache.read, r.rowsAt(plan)
		state = append(state, at[rowBlocks])
	}
	if p.Prefix > 0 {
		state = append(state, r.prefixesAt(plan)...)
	}
	layers, err := read()
	if err != nil {
		return nil, err
	}
	d := &decoding{runner: r, adapter: a, cuts: p.Cuts, rows: rows, prefix: p.Prefix > 0, repeat: while}
	if r.opts.unroll {
		d.repeat = unrolled(r.opts.DecodeSteps)
	}
	out, err := r.call(a, p, d.build, slices.Concat(r.weights(a), layers, state))
	if err != nil {
		return nil, err
	}
	if !rows {
		r.cache.layers = out[5:]
		return out[:5], nil
	}
	return out[:5], r.store(p, out[5:], at)
}

// decodeInputs returns the initial state of the loop that follows the cache, in the order of the constants below.
func (r *runner) decodeInputs(calls []decodeCall, window int) (in []any, cuts sampling.Cuts) {
	w, n := len(calls), r.opts.DecodeSteps
	token, start, count := make([]int32, w), make([]int32, w), make([]int32, w)
	ends, uniform, settings := make([]int32, w*maxEnds), make([]float64, w*n), make([]sampling.Settings, w)
	for i := range ends {
		ends[i] = noToken
	}
	blocks := make([][]int32, w)
	for i, c := range calls {
		blocks[i] = c.blocks
		token[i], start[i], count[i], settings[i] = c.token, int32(c.start), int32(c.count), c.sampling
		copy(ends[i*maxEnds:(i+1)*maxEnds], c.ends)
		copy(uniform[i*n:], c.uniform)
	}
	temperature, topP, topK, cuts := sampling.Inputs(settings)
	return []any{
		tensors.FromFlatDataAndDimensions(token, w), tensors.FromFlatDataAndDimensions(start, w),
		tensors.FromFlatDataAndDimensions(count, w), table(blocks, w, window),
		tensors.FromFlatDataAndDimensions(ends, w, maxEnds),
		tensors.FromFlatDataAndDimensions(uniform, w, n), tensors.FromFlatDataAndDimensions(temperature, w),
		tensors.FromFlatDataAndDimensions(topP, w), tensors.FromFlatDataAndDimensions(topK, w),
		tensors.FromScalar(int32(0)), tensors.FromScalar(int32(1)),
		tensors.FromFlatDataAndDimensions(make([]int32, w*n), w, n),
		tensors.FromFlatDataAndDimensions(make([]float32, w*n), w, n),
		tensors.FromFlatDataAndDimensions(make([]float32, w*n), w, n),
	}, cuts
}

// readSamples reads counts [W], ids, logprobs and reshaped logprobs [W, N], and the number of steps from the device.
func readSamples(out []*tensors.Tensor, n int) (s sampled, err error) {
	defer finalize(out)
	counts, ids, steps := read[int32](out[0], &err), read[int32](out[1], &err), read[int32](out[4], &err)
	logprobs, reshaped := read[float32](out[2], &err), read[float32](out[3], &err)
	if err != nil {
		return s, err
	}
	s = sampled{tokens: make([][]Token, len(counts)), steps: int(steps[0])}
	for i, count := range counts {
		for j := i * n; j < i*n+int(count); j++ {
			s.tokens[i] = append(s.tokens[i], Token{ID: ids[j], Logprob: logprobs[j], Sampled: reshaped[j]})
		}
	}
	return s, nil
}

// decodePlan is what a decoding call computes: calls in the order of its rows, and some that do nothing.
type decodePlan struct {
	Program
	calls  []decodeCall
	common []int // tokens that the rows of each group have in common, whole blocks
	of     []int // the row of each call that was asked for; nil where they are in order
}

// commonOf is what a row has in common with others.
func (p *decodePlan) commonOf(row int) int {
	if p.Groups == 0 {
		return 0
	}
	return p.common[row/(p.Rows/p.Groups)]
}

// inOrder returns values of the rows in the order in which calls were asked for.
func (p *decodePlan) inOrder(rows [][]Token) [][]Token {
	if p.of == nil {
		return rows
	}
	out := make([][]Token, len(p.of))
	for i, row := range p.of {
		out[i] = rows[row]
	}
	return out
}

// planDecode chooses the program that reads the fewest keys for some calls: of whole rows, or of rows behind prefixes.
func planDecode(opts Options, calls []decodeCall) decodePlan {
	shapes, last := opts.shapes(), 0
	rows := shapes.Heights.Fit(len(calls))
	for _, c := range calls {
		last = max(last, c.start+c.count)
	}
	best := decodePlan{Program: Program{
		Kind: DecodeProgram, Rows: rows, Width: opts.DecodeSteps, Window: shapes.DecodeWindows.Fit(last),
	}}
	best.calls = append(slices.Clone(calls), make([]decodeCall, rows-len(calls))...)
	if graphx.ProfileOf(opts.Device).FusedAttention {
		return best
	}
	order := make([]int, len(calls)) // those that share most of their blocks follow one another
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return slices.Compare(calls[a].fullBlocks(), calls[b].fullBlocks())
	})
	for _, p := range sharedRows(shapes, opts, rows) {
		if plan, ok := p.arrange(calls, order); ok && worthSharing(p, best.Window) && p.rowTokens() < best.rowTokens() {
			best = plan
		}
	}
	return best
}

// sharedRows are the programs of rows that share their beginnings: all of them, or each eight. Prefixes have the sizes
// of windows of prompts, and there is no program that reads hardly less than one of whole rows.
func sharedRows(shapes plan.Shapes, opts Options, rows int) (list []Program) {
	if rows == 1 {
		return nil
	}
	counts := []int{1} // of groups
	if rows > rowsOfGroup && rows%rowsOfGroup == 0 {
		counts = append(counts, rows/rowsOfGroup)
	}
	for _, groups := range counts {
		for _, prefix := range shapes.Windows {
			for _, window := range shapes.DecodeWindows {
				p := Program{
					Kind: DecodeProgram, Rows: rows, Width: opts.DecodeSteps, Window: window, Prefix: prefix, Groups: groups,
				}
				whole := shapes.DecodeWindows.Fit(min(prefix+window, opts.Context))
				if worthSharing(p, whole) && p.hasRoom(shapes.Blocks) {
					list = append(list, p)
				}
			}
		}
	}
	return list
}

// worthSharing reports whether a program reads at most three quarters of what whole rows of a window are.
func worthSharing(p Program, window int) bool { return 4*p.rowTokens() <= 3*p.Rows*window }

// rowsOfGroup is how many rows share a prefix where not all do.
const rowsOfGroup = 8

// arrange assigns calls, in an order in which those that share blocks are neighbours, to the rows of a program. It
// reports false if they do not fit: if a row has more tokens behind what its group shares than the program's window.
func (p Program) arrange(calls []decodeCall, order []int) (plan decodePlan, ok bool) {
	plan = decodePlan{
		Program: p, calls: make([]decodeCall, p.Rows), common: make([]int, p.Groups), of: make([]int, len(calls)),
	}
	each, group := p.Rows/p.Groups, 0
	for len(order) > 0 {
		n, common := p.longestGroup(calls, order[:min(len(order), each)])
		if n == 0 || group == p.Groups {
			return plan, false
		}
		plan.common[group] = common
		for i, call := range order[:n] {
			row := group*each + i
			plan.calls[row], plan.of[call] = calls[call], row
		}
		order, group = order[n:], group+1
	}
	return plan, true
}

// longestGroup returns how many of the first calls fit into a group, and how many tokens they have in common.
func (p Program) longestGroup(calls []decodeCall, order []int) (n, common int) {
	shared, last := p.Prefix/blockTokens, 0
	for i, at := range order {
		shared = min(shared, schedule.CommonPrefix(calls[order[0]].fullBlocks(), calls[at].fullBlocks()))
		if last = max(last, calls[at].start+calls[at].count); last-shared*blockTokens > p.Window {
			return i, common
		}
		common = shared * blockTokens
	}
	return len(order), common
}

// fullBlocks are the blocks of a call that it does not write to.
func (c decodeCall) fullBlocks() []int32 { return c.blocks[:c.start/blockTokens] }
