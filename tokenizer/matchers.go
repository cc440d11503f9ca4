package tokenizer

import (
	"strings"
	"unicode/utf8"

	"github.com/goart-dev/art/internal/onig"
)

// cut is a part of a text that matches, or that is between matches.
type cut struct {
	start, end int
	match      bool
}

// matcher divides a text into consecutive cuts.
type matcher func(s string, yield func(cut))

// around returns the matcher for the matches that each finds, in order.
func around(each func(s string, match func(start, end int))) matcher {
	return func(s string, yield func(cut)) {
		done := 0
		each(s, func(start, end int) {
			if done < start {
				yield(cut{done, start, false})
			}
			yield(cut{start, end, true})
			done = end
		})
		if done < len(s) {
			yield(cut{done, len(s), false})
		}
	}
}

// matchRegex finds the matches of a pattern.
func matchRegex(re *onig.Regexp) matcher {
	return around(func(s string, match func(start, end int)) {
		re.Each(s, func(start, end int) bool {
			match(start, end)
			return true
		})
	})
}

// matchString finds a fixed text.
func matchString(text string) matcher {
	return around(func(s string, match func(start, end int)) {
		for at := 0; ; at += len(text) {
			i := strings.Index(s[at:], text)
			if i < 0 {
				return
			}
			at += i
			match(at, at+len(text))
		}
	})
}

// matchRune finds single characters.
func matchRune(is func(rune) bool) matcher {
	return around(func(s string, match func(start, end int)) {
		for i, r := range s {
			if is(r) {
				_, n := utf8.DecodeRuneInString(s[i:])
				match(i, i+n)
			}
		}
	})
}
