package tokenizer

import "slices"

// behavior says what happens to delimiters: it converts cuts to the pieces to keep. The names are Hugging Face's.
type behavior func([]cut) []cut

var behaviors = map[string]behavior{
	"Isolated":           nil, // the-final--countdown -> the - final - - countdown
	"Removed":            removed,
	"MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext":     mergedWithNext,
	"Contiguous":         contiguous,
}

// removed: the-final--countdown -> the final countdown
func removed(cuts []cut) []cut {
	return slices.DeleteFunc(cuts, func(s cut) bool { return s.match })
}

// contiguous: the-final--countdown -> the - final -- countdown
func contiguous(cuts []cut) []cut {
	out := cuts[:0]
	for _, s := range cuts {
		if n := len(out); n > 0 && out[n-1].match == s.match {
			out[n-1].end = s.end
			continue
		}
		out = append(out, s)
	}
	return out
}

// mergedWithPrevious: the-final--countdown -> the- final- - countdown
func mergedWithPrevious(cuts []cut) []cut {
	var out []cut
	afterMatch := false
	for _, s := range cuts {
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
func mergedWithNext(cuts []cut) []cut {
	var out []cut
	beforeMatch := false
	for _, s := range slices.Backward(cuts) {
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
