package credit

import (
	"math/rand/v2"
	"slices"
)

// Split shuffles the units of a batch and cuts it into n parts whose numbers of units differ by at most one. One part
// is the batch as it is.
func Split(units [][]Sequence, n int, rng *rand.Rand) [][]Sequence {
	n = min(n, len(units))
	if n == 1 {
		return [][]Sequence{slices.Concat(units...)}
	}
	order := rng.Perm(len(units))
	parts := make([][]Sequence, n)
	for i, at := range order {
		parts[i*n/len(order)] = append(parts[i*n/len(order)], units[at]...)
	}
	return parts
}
