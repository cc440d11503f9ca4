package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// literalReader reads calls whose values are literals. It fails by a panic, which [literalReader.read] makes an error.
type literalReader struct {
	text  string
	depth int
}

// unreadable is why a text cannot be read.
type unreadable struct{ error }

func (r *literalReader) fail(format string, args ...any) {
	panic(unreadable{fmt.Errorf(format, args...)})
}

// read calls f up to its end, or up to where the reader fails.
func (r *literalReader) read(f func()) (err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case unreadable:
			err = problem.error
		default:
			panic(problem)
		}
	}()
	f()
	return nil
}

func (r *literalReader) space() { r.text = strings.TrimLeft(r.text, " \t\r\n") }

// has consumes a token if it comes next.
func (r *literalReader) has(token string) bool {
	r.space()
	rest, ok := strings.CutPrefix(r.text, token)
	r.text = rest
	return ok
}

// take consumes a token that must come next.
func (r *literalReader) take(token string) {
	if !r.has(token) {
		r.fail("expected %q, found %.40q", token, withoutTokens(r.text))
	}
}

// end fails if there is more text.
func (r *literalReader) end() {
	if r.space(); r.text != "" {
		r.fail("%.40q follows it", withoutTokens(r.text))
	}
}

// maxLiteralDepth bounds how deep literals nest.
const maxLiteralDepth = 100

// nest begins a value within the present one, and returns what ends it.
func (r *literalReader) nest() (end func()) {
	if r.depth++; r.depth > maxLiteralDepth {
		r.fail("its values are nested more than %d deep", maxLiteralDepth)
	}
	return func() { r.depth-- }
}

// parsePythonic reads a Python list of calls with keyword arguments, whose values are literals:
//
//	[get_weather(city="Paris", days=2), now()]
func parsePythonic(section string, _ []art.Tool) ([]art.ToolCall, error) {
	p := &pythonReader{literalReader{text: strings.TrimSpace(withoutTokens(section))}}
	var calls []art.ToolCall
	begun := false // a call has: the text is an attempt at one
	err := p.read(func() {
		p.take("[")
		for more := true; more; {
			name := p.name(true)
			p.take("(")
			begun = true
			calls = append(calls, art.ToolCall{Name: name, Arguments: p.arguments()})
			more = p.has(",")
			p.space()
			more = more && !strings.HasPrefix(p.text, "]")
		}
		p.take("]")
		p.end()
	})
	switch {
	case err != nil && !begun:
		return nil, errNoCall // a list can be an answer
	case err != nil:
		return nil, err
	}
	return calls, nil
}

// parseLFM2 reads what parsePythonic does, or JSON objects: the model writes these if the prompt asks for them.
func parseLFM2(section string, tools []art.Tool) ([]art.ToolCall, error) {
	text := strings.TrimSpace(section)
	if strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, "["), " \t\r\n"), "{") {
		return hermesKeys.parse(section, tools)
	}
	return parsePythonic(section, tools)
}

// pythonReader parses Python source.
type pythonReader struct{ literalReader }

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// name consumes a name, in which dots and dashes are allowed if dotted.
func (p *pythonReader) name(dotted bool) string {
	p.space()
	n := 0
	for n < len(p.text) && (isNameByte(p.text[n]) || dotted && (p.text[n] == '.' || p.text[n] == '-')) {
		n++
	}
	if n == 0 || p.text[0] >= '0' && p.text[0] <= '9' {
		p.fail("expected a name, found %.40q", p.text)
	}
	name := p.text[:n]
	p.text = p.text[n:]
	return name
}

// arguments reads keyword arguments up to the parenthesis, and returns a JSON object.
func (p *pythonReader) arguments() string {
	var members objectWriter
	for !p.has(")") {
		if !members.empty() {
			p.take(",")
			if p.has(")") {
				break
			}
		}
		key := p.name(false)
		p.take("=")
		if err := members.add(key, p.value()); err != nil {
			p.fail("the argument %s: %w", key, err)
		}
	}
	return members.String()
}

// pythonValue reads a text that is one literal, and returns JSON.
func pythonValue(text string) (value string, ok bool) {
	p := &pythonReader{literalReader{text: text}}
	err := p.read(func() {
		value = p.value()
		p.end()
	})
	return value, err == nil
}

// value reads a literal, and returns JSON.
func (p *pythonReader) value() string {
	defer p.nest()()
	p.space()
	switch {
	case p.text == "":
		p.fail("it ends where a value is expected")
	case p.text[0] == '"' || p.text[0] == '\'':
		return p.quoted()
	case p.has("["):
		return p.list("[", "]", p.value)
	case p.has("{"):
		return p.list("{", "}", p.member)
	}
	// It is a number or one of Python's constants.
	n := 0
	for n < len(p.text) && (isNameByte(p.text[n]) || strings.IndexByte("+-.", p.text[n]) >= 0) {
		n++
	}
	word, isConstant := pythonConstants[p.text[:n]]
	if !isConstant {
		if word = p.text[:n]; !isNumber(word) {
			p.fail("%.40q is not a literal", p.text)
		}
	}
	p.text = p.text[n:]
	return word
}

func (p *pythonReader) member() string {
	p.space()
	if p.text == "" || p.text[0] != '"' && p.text[0] != '\'' {
		p.fail("expected a quoted key, found %.40q", p.text)
	}
	key := p.quoted()
	p.take(":")
	return key + ": " + p.value()
}

func (p *pythonReader) list(open, end string, item func() string) string {
	var items []string
	for !p.has(end) {
		if len(items) > 0 {
			p.take(",")
			if p.has(end) {
				break
			}
		}
		items = append(items, item())
	}
	return open + strings.Join(items, ", ") + end
}

// pythonConstants are Python's constants, and JSON's, as JSON.
var pythonConstants = map[string]string{
	"None": "null", "True": "true", "False": "false", "null": "null", "true": "true", "false": "false",
}

var pythonEscapes = map[byte]string{
	'\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// quoted reads a string with escapes.
func (p *pythonReader) quoted() string {
	quoteMark := p.text[0]
	var b strings.Builder
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; c {
		case quoteMark:
			p.text = p.text[i+1:]
			return quote(b.String())
		case '\\':
			i += p.unescape(&b, p.text[i:]) - 1
		default:
			b.WriteByte(c)
		}
	}
	p.fail("a string has no end")
	return ""
}

// unescape writes the character that the escape at the beginning of s stands for, and returns the length of the escape.
func (p *pythonReader) unescape(b *strings.Builder, s string) int {
	if len(s) < 2 {
		p.fail("a string has no end")
	}
	if text, ok := pythonEscapes[s[1]]; ok {
		b.WriteString(text)
		return 2
	}
	digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if !ok {
		b.WriteString(s[:2])
		return 2
	}
	if len(s) < 2+digits {
		p.fail("the escape %q is incomplete", s)
	}
	v, err := strconv.ParseUint(s[2:2+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(v)) {
		p.fail("the escape %q is not a character", s[:2+digits])
	}
	b.WriteRune(rune(v))
	return 2 + digits
}

// gemmaEscape is on both sides of a string.
const gemmaEscape = "<escape>"

// parseGemma reads
//
//	call:name{city:<escape>Paris<escape>,days:[1,2],at:{lat:48.9}}
//
// Source: ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices.
func parseGemma(section string, _ []art.Tool) ([]art.ToolCall, error) {
	r := &gemmaReader{literalReader{text: section}, tagIn(section, gemmaEscape)}
	var call art.ToolCall
	err := r.read(func() {
		r.take("call:")
		if call.Name = strings.TrimSpace(withoutTokens(r.until("{"))); call.Name == "" {
			r.fail("it has no name")
		}
		r.take("{")
		call.Arguments = r.object()
		r.end()
	})
	return single(call, err)
}

// gemmaReader parses values.
type gemmaReader struct {
	literalReader
	escape string // as it is in the text
}

// until consumes the text before one of several characters; it fails if there is none.
func (r *gemmaReader) until(chars string) string {
	at := strings.IndexAny(r.text, chars)
	if at < 0 {
		r.fail("expected one of %q after %.40q", chars, withoutTokens(r.text))
	}
	text := r.text[:at]
	r.text = r.text[at:]
	return text
}

// object reads the members of an object that has begun, up to its end.
func (r *gemmaReader) object() string {
	var members objectWriter
	for !r.has("}") {
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
	if key == "" || strings.ContainsAny(key, "{}[],") {
		r.fail("expected a name, found %.40q", key)
	}
	return key
}

// quoted reads a string that has begun, up to its end.
func (r *gemmaReader) quoted() string {
	text, rest, ok := strings.Cut(r.text, r.escape)
	if !ok {
		r.fail("a string is not ended by %s", gemmaEscape)
	}
	r.text = rest
	return withoutTokens(text)
}

// value reads a value, and returns JSON.
func (r *gemmaReader) value() string {
	defer r.nest()()
	switch {
	case r.has(r.escape):
		return quote(r.quoted())
	case r.has("{"):
		return r.object()
	case r.has("["):
		var items []string
		for !r.has("]") {
			if len(items) > 0 {
				r.take(",")
			}
			items = append(items, r.value())
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	// Without escapes it is a number or a constant, which the template writes as Python does. Any other word is a string
	// whose escapes the model forgot.
	word := strings.TrimSpace(withoutTokens(r.until(",]}")))
	if word == "" || strings.ContainsAny(word, "{[<:") {
		r.fail("%.40q is not a value", word)
	}
	return valueOrText(word)
}
