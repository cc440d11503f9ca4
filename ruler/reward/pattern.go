package reward

import "regexp"

// Matches returns 1 when re matches somewhere in text, else 0. Anchor the pattern with \A and \z to match all of it.
func Matches(re *regexp.Regexp, text string) float64 {
	if re != nil && re.MatchString(text) {
		return 1
	}
	return 0
}

// LastMatch returns the first group of the last match of re in text, or all of the match where re has no group. ok is
// false when there is none. The last one is usually the answer: what stands before it is a draft.
func LastMatch(re *regexp.Regexp, text string) (found string, ok bool) {
	if re == nil {
		return "", false
	}
	matches := re.FindAllStringSubmatch(text, -1)
	if len(matches) == 0 {
		return "", false
	}
	last := matches[len(matches)-1]
	return last[min(1, len(last)-1)], true
}
