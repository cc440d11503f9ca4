package tokenizer

import "slices"

// behavior says what becomes of delimiters: it turns spans into the pieces to keep. The names are Hugging Face's.
type behavior func([]span) []span

var behaviors = map[string]behavior{
	"Isolated":           nil, // the-final--countdown -> the - final - - countdown
	"Removed":            removed,
	"MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext":     mergedWithNext,
	"Contiguous":         contiguous,
}

// removed: the-final--countdown -> the final countdown
func removed(spans []span) []span {
	return slices.DeleteFunc(spans, func(s span) bool { return s.match })
}

// contiguous: the-final--countdown -> the - final -- countdown
func contiguous(spans []span) []span {
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && out[n-1].match == s.match {
			out[n-1].end = s.end
			continue
		}
		out = append(out, s)
	}
	return out
}

// mergedWithPrevious: the-final--countdown -> the- final- - countdown
func mergedWithPrevious(spans []span) []span {
	var out []span
	afterMatch := false
	for _, s := range spans {
		if s.match && !afterMatch && len(out) > 0 {
			out[len(out)-1].end = s.end
		} else {
			out = append(out, s)
		}
		afterMatch = s.match
	}
	return out
}

// mergedWithNext: the-final--countdown -> the -final - -countdown
func mergedWithNext(spans []span) []span {
	var out []span
	beforeMatch := false
	for _, s := range slices.Backward(spans) {
		if s.match && !beforeMatch && len(out) > 0 {
			out[len(out)-1].start = s.start
		} else {
			out = append(out, s)
		}
		beforeMatch = s.match
	}
	slices.Reverse(out)
	return out
}
