package agents

import (
	"fmt"
	"math"
)

// Goal says when a training has learned enough, or learns no more, by its validation.
type Goal struct {
	// Value is the validation score to reach. 0 is none.
	Value float64
	// Patience is how many validations in a row may stay below the best so far plus MinGain. 0 is without end.
	Patience int
	// MinGain is how much better than the best a validation must be to count as an improvement. Default 0: any gain.
	MinGain float64
}

// Reached decides after the validations so far, oldest first; the first is that of the untrained model, which does not
// end the training. why says what decided. NaN is no improvement.
func (g Goal) Reached(scores []float64) (why string, stop bool) {
	if len(scores) < 2 {
		return "", false
	}
	best, at := math.Inf(-1), 0
	for i, score := range scores {
		if score > best+g.MinGain || math.IsInf(best, -1) && !math.IsNaN(score) {
			best, at = score, i
		}
	}
	last, waited := scores[len(scores)-1], len(scores)-1-at
	switch {
	case g.Value > 0 && last >= g.Value:
		return fmt.Sprintf("validation reached %.3f, the goal is %.3f", last, g.Value), true
	case g.Patience > 0 && waited >= g.Patience:
		return fmt.Sprintf("no validation of the last %d was better than %.3f", waited, best), true
	}
	return "", false
}
