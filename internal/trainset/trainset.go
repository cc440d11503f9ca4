// Package trainset turns what a training call is given, groups, conversations or pairs, into tokenised sequences with
// advantages. It says what cannot be trained on, and why.
package trainset

// Seed is the seed of the order of sequences in a step of a run with a seed.
func Seed(seed uint64, step int) uint64 { return seed*0x9e3779b97f4a7c15 + uint64(step) }
