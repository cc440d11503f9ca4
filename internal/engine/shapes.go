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

// budget is the number of tokens that a round computes of prompts.
func budget(opts Options) int {
	if opts.FewShapes { // it computes all rows anyway
		return 2 * opts.Slots * maxWidth
	}
	return maxWidth
}

// windows returns the numbers of cached tokens that graphs are compiled for, which are whole blocks: 512, four times as
// many each time, and the context, or that alone on devices that take long to compile.
func windows(opts Options) schedule.Sizes {
	if opts.FewShapes {
		return windowsFrom(opts.Context, opts.Context, 1)
	}
	return windowsFrom(512, opts.Context, 4)
}

// decodeWindows returns those of decoding calls of many tokens, which the device carries from token to token: 256,
// twice as many each time, and the context.
func decodeWindows(context int) schedule.Sizes { return windowsFrom(256, context, 2) }

func windowsFrom(n, context, factor int) (out schedule.Sizes) {
	for ; n < context; n *= factor {
		out = append(out, n)
	}
	return append(out, (context+BlockTokens-1)/BlockTokens*BlockTokens)
}
