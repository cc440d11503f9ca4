package trainer

import "github.com/goart-dev/art/model"

// EstimateMemory bounds from above what [Plan] says, in bytes, from sizes alone: it compiles nothing. params is the
// number of the adapter's parameters, workers that of micro-batches at once, length the tokens of a sequence. For L
// layers, Q heads of size E, hidden size H, MLP of I (of all experts, which are all computed), vocabulary V, and n =
// rows · length tokens of a micro-batch:
//
//	adapter = 12 · 4·params                                             see adapterCopies
//	work    = workers · 4·(n·L·(8H + 8QE + 4I) + 1.5·n·length·L·Q + 512·V + params)
//
// The scores of attention, with the square of the length, are what long sequences take; where they are capped they
// count 2.5.
func EstimateMemory(c *model.Config, params float64, workers, length int) (adapter, work float64) {
	length = padLength(length)
	rows := max(1, microTokens(c)/length)
	n, t, l := float64(rows*length), float64(length), float64(c.NumLayers)
	q := float64(c.NumHeads)
	inner := float64(max(c.IntermediateSize, c.NumExperts*c.MoEIntermediateSize))
	token := l * (8*float64(c.HiddenSize) + 8*q*float64(c.HeadDim) + 4*inner)
	scores := 1.5
	if c.AttentionSoftCap != 0 {
		scores = 2.5 // the capped ones are kept too
	}
	work = 4 * (n*token + scores*n*t*l*q + 512*float64(c.VocabSize) + params)
	return adapterCopies * 4 * params, float64(workers) * work
}
