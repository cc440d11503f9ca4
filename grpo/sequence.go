package grpo

import "github.com/goart-dev/art/grpo/credit"

// Sequence is one history of one trajectory, tokenised; see [credit.Sequence].
type Sequence = credit.Sequence
