package chat

import (
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// gemmaEscape is on both sides of a string.
const gemmaEscape = "<escape>"

// parseGemma reads
//
//	call:name{city:<escape>Paris<escape>,days:[1,2],at:{lat:48.9}}
//
// Source: ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices.
func parseGemma(section string, _ []art.Tool) ([]art.ToolCall, error) {
	r := &gemmaReader{text: section, escape: tagIn(section, gemmaEscape)}
	r.take("call:")
	name := strings.TrimSpace(withoutTokens(r.until("{")))
	if r.err == nil && name == "" {
		r.fail("it has no name")
	}
	r.take("{")
	arguments := r.object()
	if r.space(); r.err == nil && r.text != "" {
		r.fail("%.40q follows it", withoutTokens(r.text))
	}
	return single(art.ToolCall{Name: name, Arguments: arguments}, r.err)
}

// gemmaReader parses values. The first error is kept; after it everything reads as empty.
type gemmaReader struct {
	text   string
	escape string // as it is in the text
	depth  int
	err    error
}

func (r *gemmaReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.text = ""
}

func (r *gemmaReader) space() { r.text = strings.TrimLeft(r.text, " \t\r\n") }

// has consumes a token if it comes next.
func (r *gemmaReader) has(token string) bool {
	r.space()
	rest, ok := strings.CutPrefix(r.text, token)
	r.text = rest
	return ok
}

// take consumes a token that must come next.
func (r *gemmaReader) take(token string) {
	if !r.has(token) {
		r.fail("expected %q, found %.40q", token, withoutTokens(r.text))
	}
}

// until consumes the text before one of several characters; it fails if there is none.
func (r *gemmaReader) until(chars string) string {
	at := strings.IndexAny(r.text, chars)
	if at < 0 {
		r.fail("expected one of %q after %.40q", chars, withoutTokens(r.text))
		return ""
	}
	text := r.text[:at]
	r.text = r.text[at:]
	return text
}

// object reads the members of an object that has begun, up to its end.
func (r *gemmaReader) object() string {
	var members objectWriter
	for r.err == nil && !r.has("}") {
		if !members.empty() {
			r.take(",")
		}
		key := r.key()
		r.take(":")
		if err := members.add(key, r.value()); err != nil {
			r.fail("the argument %s: %w", key, err)
		}
	}
	return members.String()
}

// key reads the name of a member, which may be written as a string.
func (r *gemmaReader) key() string {
	if r.has(r.escape) {
		return r.quoted()
	}
	key := withoutTokens(strings.TrimSpace(r.until(":")))
	if r.err == nil && (key == "" || strings.ContainsAny(key, "{}[],")) {
		r.fail("expected a name, found %.40q", key)
	}
	return key
}

// quoted reads a string that has begun, up to its end.
func (r *gemmaReader) quoted() string {
	text, rest, ok := strings.Cut(r.text, r.escape)
	if !ok {
		r.fail("a string is not ended by %s", gemmaEscape)
		return ""
	}
	r.text = rest
	return withoutTokens(text)
}

// maxGemmaDepth bounds how deep values nest.
const maxGemmaDepth = 100

// value reads a value, and returns JSON.
func (r *gemmaReader) value() string {
	r.depth++
	defer func() { r.depth-- }()
	switch {
	case r.depth > maxGemmaDepth:
		r.fail("its values are nested more than %d deep", maxGemmaDepth)
	case r.has(r.escape):
		return quote(r.quoted())
	case r.has("{"):
		return r.object()
	case r.has("["):
		return r.list()
	default:
		return r.word()
	}
	return ""
}

// list reads the items of a list that has begun, up to its end.
func (r *gemmaReader) list() string {
	var items []string
	for r.err == nil && !r.has("]") {
		if len(items) > 0 {
			r.take(",")
		}
		items = append(items, r.value())
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// word reads a value without escapes: a number or a constant, which the template writes as Python does. Any other word
// is a string whose escapes the model forgot.
func (r *gemmaReader) word() string {
	word := strings.TrimSpace(withoutTokens(r.until(",]}")))
	if r.err == nil && (word == "" || strings.ContainsAny(word, "{[<:")) {
		r.fail("%.40q is not a value", word)
	}
	return valueOrText(word)
}
