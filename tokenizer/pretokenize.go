package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// preTokenizer cuts text into words, which are what merges cannot cross. Each step cuts the pieces of the one before.
type preTokenizer []splitter

type splitter interface {
	split(s string, yield func(piece string))
}

// words calls yield for each word of s that is not empty.
func (p preTokenizer) words(s string, yield func(string)) {
	if s == "" {
		return
	}
	if len(p) == 0 {
		yield(s)
		return
	}
	p[0].split(s, func(piece string) { p[1:].words(piece, yield) })
}

// leadingSpace puts a space before a piece that does not start with one.
type leadingSpace struct{}

func (leadingSpace) split(s string, yield func(string)) {
	if !strings.HasPrefix(s, " ") {
		s = " " + s
	}
	yield(s)
}

// span is a part of a text that does or does not match.
type span struct {
	start, end int
	match      bool
}

// matcher divides a text into spans without a gap.
type matcher func(s string, yield func(span))

// delimiters cuts a text at the matches of a pattern.
type delimiters struct {
	find     matcher
	invert   bool     // what does not match is the delimiter
	behavior behavior // nil: each span is a piece
}

func (d delimiters) split(s string, yield func(string)) {
	if d.behavior == nil {
		d.find(s, func(p span) { yield(s[p.start:p.end]) })
		return
	}
	var spans []span
	d.find(s, func(p span) {
		p.match = p.match != d.invert
		spans = append(spans, p)
	})
	for _, p := range d.behavior(spans) {
		yield(s[p.start:p.end])
	}
}

// matchRegex finds the matches of a regular expression.
func matchRegex(re *regexp2.Regexp) matcher {
	return func(s string, yield func(span)) {
		runes := []rune(s)
		at, done := 0, 0 // runes and bytes that were handed out
		last := -1       // end of the last match, in runes
		emit := func(end int, match bool) {
			start := done
			for ; at < end; at++ {
				done += utf8.RuneLen(runes[at])
			}
			yield(span{start, done, match})
		}
		err := re.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
			start, length, _ := m.GroupRange(0)
			if length == 0 && start == last {
				return true
			}
			if start > at {
				emit(start, false)
			}
			last = start + length
			emit(last, true)
			return true
		})
		if err != nil { // only a time-out or a stack limit, and neither is set
			panic("tokenizer: " + err.Error())
		}
		if at < len(runes) {
			emit(len(runes), false)
		}
	}
}

// matchString finds a fixed text.
func matchString(text string) matcher {
	return func(s string, yield func(span)) {
		done := 0
		for {
			i := strings.Index(s[done:], text)
			if i < 0 {
				break
			}
			if i > 0 {
				yield(span{done, done + i, false})
			}
			done += i + len(text)
			yield(span{done - len(text), done, true})
		}
		if done < len(s) {
			yield(span{done, len(s), false})
		}
	}
}

// matchDigit finds single numeric characters.
func matchDigit(s string, yield func(span)) {
	done := 0
	for i, r := range s {
		if !unicode.IsNumber(r) {
			continue
		}
		if done < i {
			yield(span{done, i, false})
		}
		done = i + utf8.RuneLen(r)
		yield(span{i, done, true})
	}
	if done < len(s) {
		yield(span{done, len(s), false})
	}
}
