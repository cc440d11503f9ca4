package credit

import "cmp"

// Overlong lowers the reward of long trajectories, softly: by 0 up to Longest-Buffer sampled tokens, by Penalty above
// Longest, linearly between (DAPO, Yu et al. 2025, https://arxiv.org/abs/2503.14476). Where answers run into their
// limit. It counts all sampled tokens of an agent's episode, so long but necessary ones pay too. [Overlong.Of] has the
// formula.
type Overlong struct {
	// Longest is the number of sampled tokens of a trajectory above which the penalty is full; 0, the default, is off.
	Longest int
	// Buffer is the number of tokens over which the penalty rises, at most Longest. 0, the default, is a sudden penalty
	// above Longest. A fifth of Longest, as in the paper, tells answers apart before they are cut.
	Buffer int
	// Penalty defaults to 1, the size of a right answer's reward.
	Penalty float64
}

// WithDefaults returns a copy of o with the penalty filled in where it is on.
func (o Overlong) WithDefaults() Overlong {
	if o.Longest != 0 {
		o.Penalty = cmp.Or(o.Penalty, 1)
	}
	return o
}

// Validate lists every problem.
func (o Overlong) Validate() error {
	var found problems
	found.check(o.Longest >= 0, "overlong longest is %d, want >= 0", o.Longest)
	found.check(o.Longest != 0 || o == Overlong{}, "overlong has options %+v and no longest", o)
	found.check(o.Buffer >= 0 && o.Buffer <= max(o.Longest, 0), "overlong buffer is %d, want 0 to %d", o.Buffer, o.Longest)
	found.notNegative("overlong penalty", &o.Penalty)
	return found.err()
}

// Of is what is added to the reward of a trajectory of so many sampled tokens:
//
//	0                                                up to Longest - Buffer, or where it is off
//	-Penalty·(tokens - Longest + Buffer) / Buffer    up to Longest
//	-Penalty                                         above
//
// Source: DAPO (Yu et al. 2025, https://arxiv.org/abs/2503.14476), equation 13.
func (o Overlong) Of(tokens int) float64 {
	o = o.WithDefaults()
	over := tokens - (o.Longest - o.Buffer)
	switch {
	case o.Longest == 0 || over <= 0:
		return 0
	case tokens > o.Longest:
		return -o.Penalty
	default:
		return o.Penalty * (-float64(over) / float64(o.Buffer))
	}
}
