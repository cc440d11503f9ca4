package engine

import "github.com/goart-dev/art/internal/engine/schedule"

// maxWidth limits the tokens of a prompt that one round computes: a longer prompt takes several rounds.
const maxWidth = 256

// widths returns the numbers of tokens per row that graphs are compiled for: 1, 4, 8, 12, 16, 24, 32, 48, 64, 96, ...
func widths(context int) schedule.Sizes {
	out := schedule.Sizes{1, 4}
	for w := 8; w <= min(context, maxWidth); w *= 2 {
		out = append(out, w, w+w/2)
	}
	for len(out) > 1 && out.Largest() > min(context, maxWidth) {
		out = out[:len(out)-1]
	}
	return out
}

// heights returns the numbers of rows that graphs are compiled for: powers of two and the number of slots, or that
// alone on devices that take long to compile.
func heights(opts Options) schedule.Sizes {
	var out schedule.Sizes
	for n := 1; n < opts.Slots && !opts.FewShapes; n *= 2 {
		out = append(out, n)
	}
	return append(out, opts.Slots)
}

// windows returns the numbers of cached tokens that decoding is compiled for: powers of two and the context.
func windows(context int) schedule.Sizes {
	var out schedule.Sizes
	for n := 256; n < context; n *= 2 {
		out = append(out, n)
	}
	return append(out, context)
}
