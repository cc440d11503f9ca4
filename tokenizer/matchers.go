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

// matchRegex finds the matches of a pattern.
func matchRegex(re *onig.Regexp) matcher {
	return func(s string, yield func(cut)) {
		done := 0
		re.Each(s, func(start, end int) bool {
			if done < start {
				yield(cut{done, start, false})
			}
			yield(cut{start, end, true})
			done = end
			return true
		})
		if done < len(s) {
			yield(cut{done, len(s), false})
		}
	}
}

// matchString finds a fixed text.
func matchString(text string) matcher {
	return func(s string, yield func(cut)) {
		done := 0
		for {
			i := strings.Index(s[done:], text)
			if i < 0 {
				break
			}
			if i > 0 {
				yield(cut{done, done + i, false})
			}
			done += i + len(text)
			yield(cut{done - len(text), done, true})
		}
		if done < len(s) {
			yield(cut{done, len(s), false})
		}
	}
}

// matchRune finds single characters.
func matchRune(is func(rune) bool) matcher {
	return func(s string, yield func(cut)) {
		done := 0
		for i, r := range s {
			if !is(r) {
				continue
			}
			if done < i {
				yield(cut{done, i, false})
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			done = i + n
			yield(cut{i, done, true})
		}
		if done < len(s) {
			yield(cut{done, len(s), false})
		}
	}
}
