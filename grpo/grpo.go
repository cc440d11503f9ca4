// Package grpo turns rewards into a loss: Group Relative Policy Optimization and its relatives.
//
// A training step goes through the files of this package in this order:
//
//	Advantages    rewards of a group           -> one advantage a trajectory       (pure Go)
//	Normalize     advantages, token counts     -> weights and scale of the batch   (pure Go)
//	Pack          tokenised sequences          -> padded rectangles                (pure Go)
//	PolicyLoss    logprobs, old and new        -> a scalar and metrics             (graph)
//	AdamW.Step    gradients                    -> new parameters and moments       (graph)
//
// Functions that take or return a *Node build graphs and panic on misuse; everything else returns errors.
//
// One word a concept: a group holds trajectories, a trajectory has one or more histories, a tokenised history is a
// [Sequence]. Old logprobs are those recorded when a token was sampled, new ones those of the policy being trained.
package grpo
