// Package credit assigns credit to tokens: rewards of groups become advantages, and advantages become weighted numbers
// of the tokens of a batch. It is the part of GRPO that needs no graph, for trainers that compute the loss elsewhere;
// package grpo has the losses.
//
//	Advantages    rewards of a group           -> one advantage per trajectory
//	Normalize     advantages, token counts     -> weights and scale of the batch
//	ShapeByKL     reference logprobs           -> advantages of tokens
//	Preference    logprobs of pairs            -> advantages of answers (DPO)
package credit
