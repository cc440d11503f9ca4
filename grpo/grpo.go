// Package grpo turns rewards into a loss: Group Relative Policy Optimization and its relatives.
//
// A training step uses these functions in this order:
//
//	credit.Advantages    rewards of a group   -> one advantage per trajectory     (pure Go)
//	credit.Normalize     advantages, lengths  -> weights and scale of the batch   (pure Go)
//	BuildLoss            logprobs, old, new   -> a scalar and metrics             (graph)
//	AdamW.Step           gradients            -> new parameters and moments       (graph)
//
// A [Loss] is a value: [PolicyLoss] and [SupervisedLoss] are two, and others need no change elsewhere. [Corrected] and
// [Penalized] are losses around a loss: importance sampling against the sampler, and a KL penalty or an entropy bonus.
//
// Functions that take or return a *Node build graphs and panic on misuse; everything else returns errors.
//
// Terms: a group holds trajectories, a trajectory has one or more histories, a tokenised history is a
// [Sequence]. Old logprobs are those recorded when a token was sampled, new ones those of the policy being trained.
package grpo

import (
	"math"

	"github.com/goart-dev/art/grpo/credit"
)

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Sequence is one history of one trajectory, tokenised; see [credit.Sequence].
type Sequence = credit.Sequence
