package main

import "math"

// invalid is the reward of a game that ended with a reply that is no move.
const invalid = -1.0

// reward says how good the end of a game is. With the target W:
//
//	W is reached: 2
//	otherwise: (log2 highest - 1) / (log2 W - 1) + 0.2 (log2 sum - 1) / (log2 (cells W) - 1)
//
// The highest tile counts most. The sum of all tiles, which grows with every move, makes the rewards of a group differ.
// This is ART's reward for this game, whose boards have 16 cells.
func reward(b *board, target int) float64 {
	if b.highest() >= target {
		return 2
	}
	fraction := func(value, of int) float64 {
		return (math.Log2(float64(value)) - 1) / (math.Log2(float64(of)) - 1)
	}
	return fraction(b.highest(), target) + 0.2*fraction(b.sum(), len(b.cells)*target)
}
