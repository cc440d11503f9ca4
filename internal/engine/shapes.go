package engine

import "github.com/goart-dev/art/internal/engine/schedule"

// maxWidth limits the tokens of a prompt that one round computes: a longer prompt takes several rounds.
const maxWidth = 256

// widths returns the numbers of tokens per row that graphs are compiled for: 1, 4, 8, 12, 16, 24, 32, 48, 64, 96, ...;
// or 1, 16, 64 and 256 on devices that take long to compile.
func widths(opts Options) schedule.Sizes {
	out := schedule.Sizes{1, 16, 64, maxWidth}
	if !opts.FewShapes {
		out = schedule.Sizes{1, 4}
		for w := 8; w <= maxWidth; w *= 2 {
			out = append(out, w, w+w/2)
		}
	}
	for len(out) > 1 && out.Largest() > min(opts.Context, maxWidth) {
		out = out[:len(out)-1]
	}
	return out
}

// heights returns the numbers of rows that graphs are compiled for: powers of two, or of eight on devices that take
// long to compile, and the number of slots.
func heights(opts Options) schedule.Sizes {
	factor := 2
	if opts.FewShapes {
		factor = 8
	}
	var out schedule.Sizes
	for n := 1; n > 0 && n < (opts.Slots+factor/2-1)/(factor/2); n *= factor {
		out = append(out, n)
	}
	return append(out, opts.Slots)
}

// roundShape is the shape of the tokens of a round.
type roundShape struct{ rows, width int }

// roundShapes returns the shapes that rounds have: many rows are short ones, for there is a budget of tokens.
func roundShapes(opts Options) (list []roundShape) {
	fewest := 1 // rows of a round that has this height
	for _, rows := range heights(opts) {
		for _, width := range widths(opts) {
			if fewest == 1 || width == 1 || fewest*width <= budget(opts) {
				list = append(list, roundShape{rows, width})
			}
		}
		fewest = rows + 1
	}
	return list
}

// positions is the number of positions that the tokens of any graph may have.
func positions(opts Options) int {
	return max(windows(opts).Largest(), decodeWindows(opts.Context).Largest(), widths(opts).Largest())
}

// budget is the number of tokens that a round computes of prompts.
func budget(opts Options) int {
	if opts.FewShapes { // it may compute all rows anyway
		return 2 * opts.Slots * maxWidth
	}
	return maxWidth
}

// windows returns the numbers of cached tokens that graphs are compiled for, which are whole blocks: 512, four times as
// many each time, and the context. On devices that take long to compile, too: the keys and values of 64 rows of 2,048
// tokens take as long to copy as a fourth of the round's matmuls.
func windows(opts Options) schedule.Sizes { return windowsFrom(512, opts.Context, 4) }

// windowsOf returns those of rounds of so many tokens per row. A device that takes long to compile copies the whole
// window of each row in every round, and a reply needs many rounds of one token: they have the windows of decoding.
func windowsOf(opts Options, width int) schedule.Sizes {
	if opts.FewShapes && width == 1 {
		return decodeWindows(opts.Context)
	}
	return windows(opts)
}

// decodeWindows returns those of decoding: 128, twice as many each time, and the context. A call of many tokens copies
// a window once, and reads it for each token.
func decodeWindows(context int) schedule.Sizes { return windowsFrom(128, context, 2) }

// windowsFrom returns windows up to three quarters of the context, and the context.
func windowsFrom(n, context, factor int) (out schedule.Sizes) {
	for ; 4*n <= 3*context; n *= factor {
		out = append(out, n)
	}
	return append(out, (context+BlockTokens-1)/BlockTokens*BlockTokens)
}
