package trainer

// The rule of DefaultRate, which internal/dev/cmd/rates measures; docs/tuning.md has what is known of it.
const (
	ruleRate  = 1e-3 // of an adapter on a model of ruleWidth
	ruleWidth = 128
	ruleFull  = 0.1 // of all weights, relative to an adapter
)

// DefaultRate is the learning rate of AdamW for a base model when none is chosen: it falls with the width, since the
// updates of all columns of a matrix add up in its outputs,
//
//	1e-3 · 128 / hidden                 of an adapter
//	1e-4 · 128 / hidden                 of all weights
//
// with hidden the size of the residual stream. 1/hidden is the rule of μP for hidden matrices under Adam (Yang et al.
// 2022, https://arxiv.org/abs/2203.03466), and a tenth for all weights that of Schulman et al. 2025 (LoRA Without
// Regret).
func DefaultRate(hidden int, full bool) float64 {
	rate := ruleRate * ruleWidth / float64(hidden)
	if full {
		rate *= ruleFull
	}
	return rate
}
