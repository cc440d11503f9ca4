package engine

import (
	"slices"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
)

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
	order := byBlocks(calls)
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
	for _, groups := range groupCounts(rows) {
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

// groupCounts are the numbers of groups that rows are split into.
func groupCounts(rows int) []int {
	if rows > rowsOfGroup && rows%rowsOfGroup == 0 {
		return []int{1, rows / rowsOfGroup}
	}
	return []int{1}
}

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
		shared = min(shared, sharedBlocks(calls[order[0]], calls[at]))
		if last = max(last, calls[at].start+calls[at].count); last-shared*blockTokens > p.Window {
			return i, common
		}
		common = shared * blockTokens
	}
	return len(order), common
}

// fullBlocks are the blocks of a call that it does not write to.
func (c decodeCall) fullBlocks() []int32 { return c.blocks[:c.start/blockTokens] }

// sharedBlocks is the number of full blocks that two calls begin with.
func sharedBlocks(a, b decodeCall) int {
	x, y := a.fullBlocks(), b.fullBlocks()
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// byBlocks returns the indices of calls sorted by their blocks, so that those that share most follow one another.
func byBlocks(calls []decodeCall) []int {
	order := make([]int, len(calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return slices.Compare(calls[a].fullBlocks(), calls[b].fullBlocks())
	})
	return order
}
