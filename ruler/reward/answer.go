package reward

import (
	"fmt"
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

// Tags returns 1 when text is what [Sections] accepts, else 0.
func Tags(text string, tags ...string) float64 {
	_, err := Sections(text, tags...)
	return score(err == nil)
}

// Sections returns what stands between the tags <name> and </name> of each name. Text must consist of these sections,
// in this order, each exactly once and not blank, with nothing but white space around them; a tag may not occur
// within another section either. Otherwise the error says what is wrong.
func Sections(text string, tags ...string) ([]string, error) {
	rest := text
	var sections []string
	for _, tag := range tags {
		section, err := onlySection(text, tag)
		if err != nil {
			return nil, err
		}
		before, after, _ := strings.Cut(rest, "<"+tag+">"+section+"</"+tag+">")
		switch {
		case len(before) == len(rest):
			return nil, fmt.Errorf("<%s> is not in its order", tag)
		case strings.TrimSpace(before) != "":
			return nil, fmt.Errorf("text stands before <%s>", tag)
		case strings.TrimSpace(section) == "":
			return nil, fmt.Errorf("<%s> is blank", tag)
		}
		sections, rest = append(sections, section), after
	}
	if strings.TrimSpace(rest) != "" {
		return nil, fmt.Errorf("text stands behind the last section")
	}
	return sections, nil
}

// onlySection returns what stands between the only <tag> and the only </tag> of text.
func onlySection(text, tag string) (string, error) {
	opening, closing := "<"+tag+">", "</"+tag+">"
	for _, tag := range []string{opening, closing} {
		if n := strings.Count(text, tag); n != 1 {
			return "", fmt.Errorf("%s occurs %d times, want once", tag, n)
		}
	}
	_, after, _ := strings.Cut(text, opening)
	section, _, ok := strings.Cut(after, closing)
	if !ok {
		return "", fmt.Errorf("%s stands before %s", closing, opening)
	}
	return section, nil
}

// Tag returns what stands between <name> and </name>, wherever they are in text, without white space around it. ok is
// false unless each of them occurs exactly once.
func Tag(text, name string) (content string, ok bool) {
	content, err := onlySection(text, name)
	return strings.TrimSpace(content), err == nil
}
