package credit

// OverlongPenalty is the soft penalty of a reply of so many tokens, to be added to its reward:
//
//	0                                        up to longest - buffer
//	-(tokens - longest + buffer) / buffer    up to longest
//	-1                                       above
//
// It gives a gradient towards shorter replies before they are cut: for replies that run into their limit. buffer is a
// fifth of longest in the paper, and 0 is a sudden penalty.
//
// Source: DAPO (Yu et al. 2025, https://arxiv.org/abs/2503.14476), equation 13.
func OverlongPenalty(tokens, longest, buffer int) float64 {
	over := tokens - (longest - buffer)
	switch {
	case over <= 0:
		return 0
	case tokens > longest:
		return -1
	default:
		return -float64(over) / float64(buffer)
	}
}
