package chat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// parsePythonic reads a Python list of calls with keyword arguments, whose values are literals:
//
//	[get_weather(city="Paris", days=2), now()]
func parsePythonic(section string, _ []art.Tool) ([]art.ToolCall, error) {
	p := &pythonReader{text: strings.TrimSpace(withoutTokens(section))}
	p.take("[")
	calls := p.calls()
	p.space()
	if p.err == nil && p.text != "" {
		p.fail("%.40q follows it", p.text)
	}
	if p.err != nil {
		return nil, p.err
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

// pythonReader parses Python source. The first error is kept; after it everything reads as empty.
type pythonReader struct {
	text  string
	depth int
	named bool // a call has begun: the text is an attempt at one
	err   error
}

func (p *pythonReader) fail(format string, args ...any) {
	if p.err != nil {
		return
	}
	p.err = fmt.Errorf(format, args...)
	if !p.named {
		p.err = errNoCall // a list can be an answer
	}
	p.text = ""
}

func (p *pythonReader) space() { p.text = strings.TrimLeft(p.text, " \t\r\n") }

// has consumes a token if it comes next.
func (p *pythonReader) has(token string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.text, token)
	p.text = rest
	return ok
}

// take consumes a token that must come next.
func (p *pythonReader) take(token string) {
	if !p.has(token) {
		p.fail("expected %q, found %.40q", token, p.text)
	}
}

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
		return ""
	}
	name := p.text[:n]
	p.text = p.text[n:]
	return name
}

func (p *pythonReader) calls() []art.ToolCall {
	var calls []art.ToolCall
	for p.err == nil {
		name := p.name(true)
		p.take("(")
		p.named = p.named || p.err == nil
		calls = append(calls, art.ToolCall{Name: name, Arguments: p.arguments()})
		if !p.has(",") {
			break
		}
		p.space()
		if strings.HasPrefix(p.text, "]") {
			break
		}
	}
	p.take("]")
	return calls
}

// arguments reads keyword arguments up to the parenthesis, and returns a JSON object.
func (p *pythonReader) arguments() string {
	var members objectWriter
	for p.err == nil && !p.has(")") {
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
	p := &pythonReader{text: text}
	value = p.value()
	p.space()
	return value, p.err == nil && p.text == ""
}

// maxPythonDepth bounds how deep literals nest.
const maxPythonDepth = 100

// value reads a literal, and returns JSON.
func (p *pythonReader) value() string {
	p.depth++
	defer func() { p.depth-- }()
	p.space()
	switch {
	case p.depth > maxPythonDepth:
		p.fail("its values are nested more than %d deep", maxPythonDepth)
	case p.text == "":
		p.fail("it ends where a value is expected")
	case p.text[0] == '"' || p.text[0] == '\'':
		return p.quoted()
	case p.has("["):
		return p.list("[", "]", func() string { return p.value() })
	case p.has("{"):
		return p.list("{", "}", p.member)
	default:
		return p.word()
	}
	return ""
}

func (p *pythonReader) member() string {
	p.space()
	if p.text == "" || p.text[0] != '"' && p.text[0] != '\'' {
		p.fail("expected a quoted key, found %.40q", p.text)
		return ""
	}
	key := p.quoted()
	p.take(":")
	return key + ": " + p.value()
}

func (p *pythonReader) list(open, end string, item func() string) string {
	var items []string
	for p.err == nil && !p.has(end) {
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

// word reads a number or one of Python's constants.
func (p *pythonReader) word() string {
	n := 0
	for n < len(p.text) && (isNameByte(p.text[n]) || strings.IndexByte("+-.", p.text[n]) >= 0) {
		n++
	}
	word := p.text[:n]
	if json, ok := pythonConstants[word]; ok {
		p.text = p.text[n:]
		return json
	}
	if !isNumber(word) {
		p.fail("%.40q is not a literal", p.text)
		return ""
	}
	p.text = p.text[n:]
	return word
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
			n, err := unescape(&b, p.text[i:])
			if err != nil {
				p.fail("%w", err)
				return ""
			}
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	p.fail("a string has no end")
	return ""
}

var pythonEscapes = map[byte]string{
	'\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// unescape writes the character that the escape at the beginning of s stands for, and returns the length of the escape.
func unescape(b *strings.Builder, s string) (int, error) {
	if len(s) < 2 {
		return 0, errors.New("a string has no end")
	}
	if text, ok := pythonEscapes[s[1]]; ok {
		b.WriteString(text)
		return 2, nil
	}
	digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if !ok {
		b.WriteString(s[:2])
		return 2, nil
	}
	if len(s) < 2+digits {
		return 0, fmt.Errorf("the escape %q is incomplete", s)
	}
	v, err := strconv.ParseUint(s[2:2+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(v)) {
		return 0, fmt.Errorf("the escape %q is not a character", s[:2+digits])
	}
	b.WriteRune(rune(v))
	return 2 + digits, nil
}
