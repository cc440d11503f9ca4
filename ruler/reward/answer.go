package reward

import (
	"regexp"
	"strings"
)

// maxBoxes bounds how many boxes that are not closed are skipped.
const maxBoxes = 100

// Boxed returns what stands in the last \boxed{} or \fbox{} of text that is closed.
func Boxed(text string) (content string, ok bool) {
	rest := text
	for range maxBoxes {
		at := max(strings.LastIndex(rest, `\boxed{`), strings.LastIndex(rest, `\fbox{`))
		if at < 0 {
			return "", false
		}
		begin := at + strings.IndexByte(text[at:], '{') + 1
		if end := closingBrace(text[begin:]); end >= 0 {
			return strings.TrimSpace(text[begin : begin+end]), true
		}
		rest = text[:at]
	}
	return "", false
}

// closingBrace returns where the brace closes that was opened before text, -1 for nowhere. \{ and \} are no braces.
func closingBrace(text string) int {
	depth := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

var (
	answerTag  = regexp.MustCompile(`(?is)<answer>(.*?)</answer>`)
	answerMark = regexp.MustCompile(`####[ \t]*([^\n]+)`)
	answerIs   = regexp.MustCompile(`(?i)\banswer(?:\s+is\s*:?|\s*:)[*\s]*([^\n]+)`)
)

// FinalAnswer returns what a reply gives as its answer: the last \boxed{}, else the last <answer> section, else the
// rest of the line behind the last "####", else what follows the last "answer is" or "answer:" up to the end of the
// sentence. ok is false when there is none of these. A prompt should ask for one of them, and a format penalty make
// sure of it.
func FinalAnswer(text string) (answer string, ok bool) {
	if answer, ok = Boxed(text); ok {
		return answer, true
	}
	for _, re := range []*regexp.Regexp{answerTag, answerMark} {
		if answer, ok = LastMatch(re, text); ok {
			return strings.TrimSpace(answer), true
		}
	}
	answer, ok = LastMatch(answerIs, text)
	answer, _, _ = strings.Cut(answer, ". ")
	return strings.TrimRight(strings.TrimSpace(answer), ".*"), ok
}
