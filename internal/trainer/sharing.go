package trainer

import (
	"cmp"
	"slices"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/plan"
)

// Sequences that begin equally are computed together: what they share once, and then what each adds to it. In the order
// of their ids, the longest beginning that a sequence shares with any before it is the one that it shares with the
// last. So a prefix tree becomes a root, which all of its sequences share, and a row for what each sequence adds: a
// turn that some branches share is in the row of the first of them.

const (
	// leastShared is the fewest tokens that are worth sharing: below, padding costs as much.
	leastShared = 16
	// worthSharing is the least part of the tokens of a cluster that must be saved.
	worthSharing = 0.2
	// worthCutting is the least part of the tokens of branches that a second rectangle must save.
	worthCutting = 0.1
)

// inputs are the ids that the model reads of a sequence.
func inputs(s *grpo.Sequence) []int32 { return s.IDs[:s.NumInputs()] }

// common returns the length of what two lists begin with.
func common(a, b []int32) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// clustered returns lists of sequences that share enough of what they begin with, in the order of their ids, and the
// others.
func clustered(part []grpo.Sequence) (clusters [][]int, rest []int) {
	order := indices(len(part))
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(inputs(&part[a]), inputs(&part[b])) })
	for len(order) > 0 {
		n, saved, total := 1, 0, part[order[0]].NumInputs()
		for ; n < len(order); n++ {
			c := common(inputs(&part[order[n-1]]), inputs(&part[order[n]]))
			if c < leastShared {
				break
			}
			saved, total = saved+c, total+part[order[n]].NumInputs()
		}
		if float64(saved) > worthSharing*float64(total) {
			clusters = append(clusters, order[:n])
		} else {
			rest = append(rest, order[:n]...)
		}
		order = order[n:]
	}
	return clusters, rest
}

// planShared cuts clusters into parts that fit into a micro-batch. Those that padding makes no cheaper than their
// sequences alone are returned as others.
func (t *Trainer) planShared(part []grpo.Sequence, limit int) (cut [][]int, others []int) {
	clusters, others := clustered(part)
	for _, c := range clusters {
		parts := cutCluster(c, func(c []int) bool { return t.fits(part, limit, c) })
		shared, alone := 0, 0
		for _, p := range parts {
			shared += t.arrange(part, [][]int{p}).Tokens()
		}
		for _, i := range c {
			alone += t.plan.Padding().Length(part[i].NumInputs())
		}
		if float64(shared) <= (1-worthSharing)*float64(alone) {
			cut = append(cut, parts...)
		} else {
			others = append(others, c...)
		}
	}
	slices.Sort(others)
	slices.SortStableFunc(cut, func(a, b []int) int { return cmp.Compare(longest(part, a), longest(part, b)) })
	return cut, others
}

// fits reports whether a micro-batch may have these clusters.
func (t *Trainer) fits(part []grpo.Sequence, limit int, clusters ...[]int) bool {
	n, length := 0, 0
	for _, c := range clusters {
		n, length = n+len(c), max(length, longest(part, c))
	}
	most := t.sizes.Shared(t.plan.Padding().Length(length))
	return (limit == 0 || n <= limit) && t.plan.Tokens(t.arrange(part, clusters).Layout) <= most
}

// packShared packs clusters, as many in a micro-batch as it may have.
func (t *Trainer) packShared(part []grpo.Sequence, cut [][]int, limit int) (out []piece, err error) {
	for len(cut) > 0 {
		n := 1
		for n < len(cut) && t.fits(part, limit, cut[:n+1]...) {
			n++
		}
		a := t.arrange(part, cut[:n])
		packed, err := pack.Rows(pick(part, a.sequences), a.rows, a.Layout)
		if err != nil {
			return nil, err
		}
		out, cut = append(out, piece{packed, a.sequences}), cut[n:]
	}
	return out, nil
}

// cutCluster cuts a cluster into as few parts as fit, of about equally many sequences. A sequence alone always fits.
func cutCluster(c []int, fits func([]int) bool) (out [][]int) {
	for pieces := 1; pieces <= len(c); pieces++ {
		out = out[:0]
		ok := true
		for i := range pieces {
			part := c[i*len(c)/pieces : (i+1)*len(c)/pieces]
			ok = ok && (len(part) == 1 || fits(part))
			out = append(out, part)
		}
		if ok {
			break
		}
	}
	return out
}

func longest(part []grpo.Sequence, of []int) (n int) {
	for _, i := range of {
		n = max(n, part[i].NumInputs())
	}
	return n
}

// arrangement says where clusters lie in a micro-batch.
type arrangement struct {
	planned
	rows []pack.Row
}

// arrange lays out clusters: their roots, and what each sequence adds, in one rectangle or two, of short and long rows.
func (t *Trainer) arrange(part []grpo.Sequence, clusters [][]int) *arrangement {
	a, pad := &arrangement{}, t.plan.Padding()
	for _, c := range clusters {
		a.add(part, c)
	}
	var own []*pack.Row
	roots := 0
	for i := range a.rows {
		switch r := &a.rows[i]; {
		case r.Start == 0:
			roots, a.Length = roots+1, max(a.Length, pad.Length(r.End))
		case r.End > r.Start:
			own = append(own, r)
		}
	}
	a.Rows = pad.Rows(roots)
	slices.SortStableFunc(own, func(x, y *pack.Row) int { return cmp.Compare(x.End-x.Start, y.End-y.Start) })
	// The two parts of the rows, by length, have the least padding: they are cut after a multiple of plan.RowStep, and
	// nowhere unless that saves a part of the tokens, so that few layouts occur.
	tokens := func(rows []*pack.Row) int {
		b := rectangle(pad, rows)
		return b.Rows * b.Length
	}
	at, least := len(own), (1-worthCutting)*float64(tokens(own))
	for i := plan.RowStep; i < len(own); i += plan.RowStep {
		if n := float64(tokens(own[:i]) + tokens(own[i:])); n <= least {
			at, least = i, n
		}
	}
	for i, r := range own {
		r.Rectangle = 1
		if i >= at {
			r.Rectangle = 2
		}
	}
	short, long := rectangle(pad, own[:at]), rectangle(pad, own[at:])
	if pad.SameKeys && long.Rows > 0 {
		short.Keys = max(short.Keys, long.Keys)
		long.Keys = short.Keys
	}
	a.Branches = [pack.MaxBranches]pack.Branches{short, long}
	a.Trained = padTrained(credit.NumTrained(pick(part, a.sequences)), a.Tokens())
	return a
}

// add adds a cluster. A sequence that the next one goes on from, as the turns of a conversation do, lies in that one's
// rows and has none.
func (a *arrangement) add(part []grpo.Sequence, c []int) {
	first := len(a.sequences)
	a.sequences = append(a.sequences, c...)
	var ends []int // those whose inputs the next sequence does not begin with
	for i := range c {
		x := inputs(&part[c[i]])
		if i == len(c)-1 || common(x, inputs(&part[c[i+1]])) < len(x) {
			ends = append(ends, i)
		}
	}
	last := func(i int) []int32 { return inputs(&part[c[ends[i]]]) }
	root := len(last(0))
	shares := make([]int, len(ends))
	for i := 1; i < len(ends); i++ {
		shares[i] = common(last(i-1), last(i))
		root = min(root, shares[i])
	}
	shares[0] = root
	a.rows = append(a.rows, pack.Row{Sequence: first + ends[0], End: root})
	from, next := first+ends[0], 0
	for i, end := range ends {
		a.rows = append(a.rows, pack.Row{Sequence: first + end, From: from, Start: shares[i], End: len(last(i))})
		for from = first + end; next < end; next++ {
			n := part[c[next]].NumInputs()
			a.rows = append(a.rows, pack.Row{Sequence: first + next, From: from, Start: n, End: n})
		}
		next++
	}
}

// rectangle is the shape that rows need.
func rectangle(p plan.Padding, rows []*pack.Row) pack.Branches {
	b := pack.Branches{Rows: p.Rows(len(rows))}
	for _, r := range rows {
		b.Length, b.Keys = max(b.Length, p.Length(r.End-r.Start)), max(b.Keys, p.Keys(r.End))
	}
	return b
}
