package main

// outcome is what an agent did.
type outcome struct {
	ran      bool // a query did
	found    bool // one that ran gives the right answer, or one that misses some conventions
	answered bool
	known    bool // the answer is the right one, or the one that misses some conventions
	missed   int  // how many
	turns    int
}

// right reports whether the answer is, and comes from a query.
func (o *outcome) right() bool { return o.ran && o.known && o.missed == 0 }

// near reports whether only conventions are missed.
func (o *outcome) near() bool { return o.ran && o.known && o.missed > 0 }

// reward is 0 if no query ran, 0.1 if one did, 0.15 if one gives the right answer or one that misses some conventions,
// and for an answer that is right but for some conventions
//
//	0.1 + 0.2 / missed
//
// that is 0.3, 0.2 or 0.17. The right answer is worth 1: so much more that a group with one right answer is about that
// answer, and the steps below it matter where there is none.
func (o *outcome) reward() float64 {
	switch {
	case o.right():
		return 1
	case o.near():
		return 0.1 + 0.2/float64(o.missed)
	case o.found:
		return 0.15
	case o.ran:
		return 0.1
	}
	return 0
}

// metrics are what is measured apart from the reward.
func (o *outcome) metrics() map[string]float64 {
	return map[string]float64{
		"right": one(o.right()), "near": one(o.near()), "ran": one(o.ran), "turns": float64(o.turns),
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
