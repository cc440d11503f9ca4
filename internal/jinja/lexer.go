package jinja

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token. Operators are their own kind: "+", "//".
type kind string

const (
	tokData     kind = "data"
	tokBlock    kind = "{%"
	tokBlockEnd kind = "%}"
	tokPrint    kind = "{{"
	tokPrintEnd kind = "}}"
	tokName     kind = "name"
	tokString   kind = "string"
	tokInt      kind = "integer"
	tokFloat    kind = "float"
	tokEOF      kind = "end of template"
)

// token is a token of a template. text is a name, a string or data; value a number.
type token struct {
	kind  kind
	line  int
	text  string
	value any
}

// lexer splits a template into tokens.
type lexer struct {
	src      string
	pos      int
	line     int
	atLine   bool     // the last match ended with a line break, or there was none
	brackets []string // that close the open ones
	tokens   []token
}

// tokenize returns the tokens of a template, including the end. A single line break at the end of the text is dropped.
func tokenize(text string) []token {
	text = newlines.Replace(text)
	l := &lexer{src: strings.TrimSuffix(text, "\n"), line: 1, atLine: true}
	for l.pos < len(l.src) {
		l.data()
	}
	l.add(token{kind: tokEOF})
	return l.tokens
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func (l *lexer) add(t token) {
	t.line = l.line
	l.tokens = append(l.tokens, t)
}

// fail raises a syntax error on the current line.
func (l *lexer) fail(format string, args ...any) { raiseAt(l.line, syntaxError, format, args...) }

// advance moves to a position.
func (l *lexer) advance(to int) {
	passed := l.src[l.pos:to]
	l.line += strings.Count(passed, "\n")
	l.atLine = strings.HasSuffix(passed, "\n")
	l.pos = to
}

// data reads text up to the next tag, and the opening of the tag.
func (l *lexer) data() {
	rest := l.src[l.pos:]
	at := nextTag(rest)
	if at < 0 {
		l.text(rest)
		l.advance(len(l.src))
		return
	}
	tag, sign := rest[at:at+2], signAt(rest, at+2)
	l.text(l.strip(rest[:at], sign, tag != "{{"))
	start := l.pos + at + 2 + len(sign)
	l.advance(l.pos + at)
	switch tag {
	case "{#":
		l.advance(start)
		l.comment()
	case "{{":
		l.tag(tokPrint, tokPrintEnd, start)
	default:
		if end, ok := rawTag(l.src, start); ok {
			l.advance(end)
			l.raw()
			return
		}
		l.tag(tokBlock, tokBlockEnd, start)
	}
}

func nextTag(s string) int {
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '{')
		if i += n; n < 0 || i+1 >= len(s) {
			return -1
		}
		if c := s[i+1]; c == '%' || c == '{' || c == '#' {
			return i
		}
	}
}

// signAt returns the "-" or "+" at a position, or "".
func signAt(s string, at int) string {
	if at < len(s) && (s[at] == '-' || s[at] == '+') {
		return s[at : at+1]
	}
	return ""
}

func (l *lexer) text(s string) {
	if s != "" {
		l.add(token{kind: tokData, text: s})
	}
}

// strip removes the white space before a tag: all of it for "-", that of its line for tags of statements.
func (l *lexer) strip(s, sign string, statement bool) string {
	if sign == "-" {
		return strings.TrimRightFunc(s, isSpace)
	}
	if sign == "" && statement {
		start := strings.LastIndexByte(s, '\n') + 1
		if (start > 0 || l.atLine) && strings.TrimFunc(s[start:], isSpace) == "" {
			return s[:start]
		}
	}
	return s
}

// spaceAfter returns the position after white space.
func spaceAfter(s string, pos int) int {
	return len(s) - len(strings.TrimLeftFunc(s[pos:], isSpace))
}

// endTag returns the position after the end of a tag, such as "%}", "-%}" with the white space that it strips, or "+%}"
// if plus is allowed.
func endTag(s string, pos int, end string, plus, trim bool) (int, bool) {
	switch rest := s[pos:]; {
	case plus && strings.HasPrefix(rest, "+"+end):
		return pos + 1 + len(end), true
	case strings.HasPrefix(rest, "-"+end):
		return spaceAfter(s, pos+1+len(end)), true
	case strings.HasPrefix(rest, end):
		pos += len(end)
		if trim && strings.HasPrefix(s[pos:], "\n") {
			pos++
		}
		return pos, true
	}
	return 0, false
}

func (l *lexer) comment() {
	for i := l.pos; i < len(l.src); i++ {
		if end, ok := endTag(l.src, i, "#}", true, true); ok {
			l.advance(end)
			return
		}
	}
	l.fail("Missing end of comment tag")
}

// rawTag reads "raw %}" after "{%", and returns where it ends.
func rawTag(s string, pos int) (int, bool) {
	pos = spaceAfter(s, pos)
	if !strings.HasPrefix(s[pos:], "raw") {
		return 0, false
	}
	return endTag(s, spaceAfter(s, pos+3), "%}", false, false)
}

// raw reads text up to {% endraw %}.
func (l *lexer) raw() {
	for i := l.pos; i < len(l.src); i++ {
		if !strings.HasPrefix(l.src[i:], "{%") {
			continue
		}
		sign := signAt(l.src, i+2)
		pos := spaceAfter(l.src, i+2+len(sign))
		if !strings.HasPrefix(l.src[pos:], "endraw") {
			continue
		}
		if end, ok := endTag(l.src, spaceAfter(l.src, pos+6), "%}", true, true); ok {
			l.text(l.strip(l.src[l.pos:i], sign, true))
			l.advance(end)
			return
		}
	}
	l.fail("Missing end of raw directive")
}

// tag reads the content of a tag.
func (l *lexer) tag(begin, end kind, start int) {
	l.add(token{kind: begin})
	l.advance(start)
	l.brackets = l.brackets[:0]
	for l.pos < len(l.src) {
		if len(l.brackets) == 0 {
			block := end == tokBlockEnd
			if after, ok := endTag(l.src, l.pos, string(end), block, block); ok {
				l.add(token{kind: end})
				l.advance(after)
				return
			}
		}
		l.token()
	}
}

// token reads one token, or white space.
func (l *lexer) token() {
	rest := l.src[l.pos:]
	c, size := utf8.DecodeRuneInString(rest)
	switch {
	case isSpace(c):
		l.advance(spaceAfter(l.src, l.pos))
	case c >= '0' && c <= '9':
		l.number(rest)
	case isNameRune(c):
		n := len(rest) - len(strings.TrimLeftFunc(rest, isNameRune))
		if !isIdentifier(rest[:n]) {
			l.fail("Invalid character in identifier")
		}
		l.add(token{kind: tokName, text: rest[:n]})
		l.advance(l.pos + n)
	case c == '\'' || c == '"':
		if n := stringEnd(rest); n > 0 {
			l.add(token{kind: tokString, text: l.unescape(newlines.Replace(rest[1 : n-1]))})
			l.advance(l.pos + n)
			return
		}
		l.fail("unexpected char %s at %d", reprString(rest[:size]), l.pos)
	default:
		l.operator(rest, rest[:size])
	}
}

func isNameRune(c rune) bool {
	return c == '_' || unicode.In(c, unicode.L, unicode.N, unicode.Mn, unicode.Mc, unicode.Pc)
}

// isIdentifier is str.isidentifier.
func isIdentifier(s string) bool {
	for i, c := range s {
		start := c == '_' || unicode.In(c, unicode.L, unicode.Nl, unicode.Other_ID_Start)
		if !start && (i == 0 || !unicode.In(c, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)) {
			return false
		}
	}
	return s != ""
}

// stringEnd returns the length of the string literal that s begins with, 0 if it is not terminated.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return 0
}

var operators = []string{
	"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
	">", "<", "=", ".", ":", "|", ",", ";",
}

var closing = map[string]string{"{": "}", "(": ")", "[": "]"}

func (l *lexer) operator(rest, first string) {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		if c, ok := closing[op]; ok {
			l.brackets = append(l.brackets, c)
		} else if op == "}" || op == ")" || op == "]" {
			n := len(l.brackets)
			if n == 0 {
				l.fail("unexpected '%s'", op)
			}
			if want := l.brackets[n-1]; want != op {
				l.fail("unexpected '%s', expected '%s'", op, want)
			}
			l.brackets = l.brackets[:n-1]
		}
		l.add(token{kind: kind(op)})
		l.advance(l.pos + len(op))
		return
	}
	l.fail("unexpected char %s at %d", reprString(first), l.pos)
}

// The numbers, as Jinja2 has them.
var (
	floatPattern = regexp.MustCompile(`^(\d+_)*\d+((\.(\d+_)*\d+)?[eE][+-]?(\d+_)*\d+|\.(\d+_)*\d+)`)
	intPattern   = regexp.MustCompile(
		`^(0[bB](_?[01])+|0[oO](_?[0-7])+|0[xX](_?[0-9a-fA-F])+|[1-9](_?\d)*|0(_?0)*)`)
)

// number reads an integer or a float.
func (l *lexer) number(s string) {
	afterDot := l.pos > 0 && l.src[l.pos-1] == '.'
	if digits := floatPattern.FindString(s); digits != "" && !afterDot {
		f, err := strconv.ParseFloat(strings.ReplaceAll(digits, "_", ""), 64)
		if err != nil && f == 0 {
			l.fail("number %s is not valid", digits)
		}
		l.add(token{kind: tokFloat, value: f})
		l.advance(l.pos + len(digits))
		return
	}
	digits := intPattern.FindString(s)
	v, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), 0)
	if !ok || len(digits) > maxIntDigits {
		l.fail("number of %d digits is too long", len(digits))
	}
	l.add(token{kind: tokInt, value: normInt(v)})
	l.advance(l.pos + len(digits))
}

// unescape decodes the escapes of a string literal as Python's codec "unicode-escape" does for a text whose non-ASCII
// characters are escaped.
func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	s = asciiRepr(s)
	for {
		plain, rest, escaped := strings.Cut(s, `\`)
		out.WriteString(plain)
		if !escaped {
			return out.String()
		}
		s = rest[l.escape(&out, rest):]
	}
}

var simpleEscapes = map[byte]string{
	'\\': "\\", '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// escape writes the character of the escape whose backslash precedes s, and returns the length of the escape after it.
func (l *lexer) escape(out *strings.Builder, s string) int {
	if s == "" {
		l.fail(`\ at end of string`)
	}
	if text, ok := simpleEscapes[s[0]]; ok {
		out.WriteString(text)
		return 1
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	switch c := s[0]; {
	case c >= '0' && c <= '7':
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(s[:n], 8, 32) // up to three octal digits
		out.WriteRune(rune(v))
		return n
	case c == 'N':
		l.fail(`\N{...} is not supported in a string: write the character`)
	case digits == 0:
		out.WriteByte('\\')
		return 0
	}
	if len(s) < 1+digits {
		l.fail(`truncated \%c escape`, s[0])
	}
	v, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil || v > unicode.MaxRune {
		l.fail(`bad \%c escape`, s[0])
	}
	out.WriteRune(rune(v))
	return 1 + digits
}
