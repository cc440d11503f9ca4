package ruler

import (
	"context"
	"math/rand/v2"

	"github.com/goart-dev/art"
)

// tieMargin is how far the scores of a pair may differ, in the mean of both orders, without one of them having won.
const tieMargin = 0.1

// Pair is the comparison of two trajectories of one scenario.
type Pair struct {
	// A and B are the mean scores, over both orders and all votes.
	A, B float64
	// Outcome is 1 when A won by more than 0.1, 0 when B did, and 0.5 for a tie.
	Outcome float64
	// Swayed tells that the order decided: each of them won when it stood in the same place.
	Swayed bool
	// Explanations are what the judges said, A's first, by order.
	Explanations []string
}

// Pair judges two trajectories side by side, in both orders, so that a judge which prefers a place cannot decide.
// Equal trajectories are a tie that nobody is asked about. [Options].OnFailure does not apply: what cannot be judged
// is an error.
func (r *Ruler) Pair(ctx context.Context, a, b *art.Trajectory) (*Pair, error) {
	if r.err != nil {
		return nil, r.err
	}
	if a == nil || b == nil {
		return nil, invalid("a trajectory of the pair is nil", "pair what was run for the same scenario")
	}
	g := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{a, b}}
	list, err := r.subjectsOf(g)
	if err != nil {
		return nil, &art.Error{Op: "judge", Err: err, Hint: "a message or a tool has no JSON"}
	}
	if len(list) == 1 {
		return &Pair{A: 0.5, B: 0.5, Outcome: 0.5, Explanations: []string{"both are the same"}}, nil
	}
	task, err := r.newTask(g, list)
	if err != nil {
		return nil, err
	}
	content, err := contentOf(list[0].Trajectory)
	if err != nil {
		return nil, err
	}
	p, lead, n := &Pair{}, [2]float64{}, float64(2*r.opts.Votes*len(r.judges))
	for j, judge := range r.judges {
		for i := range r.opts.Votes {
			v := &vote{r: r, judge: judge, task: task, list: list, seed: r.seedOf(content, j, i)}
			for order, members := range [][]int{{0, 1}, {1, 0}} {
				rating, err := v.compare(ctx, rand.New(rand.NewPCG(v.seed, uint64(order))), members)
				if err != nil {
					return nil, err
				}
				p.A, p.B = p.A+rating[0].score/n, p.B+rating[1].score/n
				lead[order] += rating[0].score - rating[1].score
				p.Explanations = append(p.Explanations, rating[0].explanation, rating[1].explanation)
			}
		}
	}
	p.Swayed = lead[0]*lead[1] < 0
	switch p.Outcome = 0.5; {
	case p.A-p.B > tieMargin:
		p.Outcome = 1
	case p.B-p.A > tieMargin:
		p.Outcome = 0
	}
	return p, nil
}
