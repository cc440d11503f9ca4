package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Grammar describes a set of texts, or of texts with control tokens between them. It is a description only: Compile
// checks it. The functions of this package make grammars.
type Grammar interface {
	// key identifies the grammar in a cache.
	key() string
	// fragment makes the automaton.
	fragment(c *compilation) (fragment, error)
}

// part is a Grammar.
type part struct {
	id   string
	make func(c *compilation) (fragment, error)
}

func (p part) key() string                               { return p.id }
func (p part) fragment(c *compilation) (fragment, error) { return p.make(c) }

// Literal is one text. Any tokens may spell it, but no control tokens.
func Literal(text string) Grammar {
	return part{fmt.Sprintf("literal(%q)", text), func(*compilation) (fragment, error) {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("grammar: literal %q is not UTF-8", text)
		}
		return literal(text), nil
	}}
}

// Token is one token of the vocabulary as a whole, such as a control token that begins a tool call.
func Token(id int32) Grammar {
	return part{fmt.Sprintf("token(%d)", id), func(c *compilation) (fragment, error) {
		if err := c.vocabulary.checkControl(id); err != nil {
			return nil, err
		}
		return token(id), nil
	}}
}

// Text is free text: any UTF-8, also none, that contains none of the stops. So a grammar can tell where text ends that
// is followed by one of them.
func Text(stops ...string) Grammar {
	return part{fmt.Sprintf("text(%q)", stops), func(c *compilation) (fragment, error) {
		for _, stop := range stops {
			if stop == "" || !utf8.ValidString(stop) {
				return nil, fmt.Errorf("grammar: stop %q of a text must be UTF-8 and not empty", stop)
			}
		}
		return freeText(stops, c.budget), nil
	}}
}

// Choice is one of the texts.
func Choice(choices ...string) Grammar {
	parts := make([]Grammar, len(choices))
	for i, choice := range choices {
		parts[i] = Literal(choice)
	}
	return Alternation(parts...)
}

// Regex is the texts that a regular expression matches as a whole, in the syntax of Go's package regexp, with \uXXXX as
// in ECMAScript. Word boundaries and multi-line assertions are not supported; look-around and back references are not
// in that syntax. One repetition is bounded by 1,000 in it.
func Regex(expression string) Grammar {
	return part{fmt.Sprintf("regex(%q)", expression), func(c *compilation) (fragment, error) {
		re, err := parsePattern(expression)
		if err != nil {
			return nil, fmt.Errorf("grammar: %w", err)
		}
		return build(pattern(re, runes), c.budget).fragment, nil
	}}
}

// Sequence is one grammar after the other.
func Sequence(parts ...Grammar) Grammar {
	return combine("sequence", parts, sequence)
}

// Alternation is one of the grammars. Without any, no text is allowed, which Compile reports.
func Alternation(parts ...Grammar) Grammar {
	return combine("alternation", parts, anyOf)
}

// Repeat is a grammar low to high times; high -1 is without bound.
func Repeat(g Grammar, low, high int) Grammar {
	return part{fmt.Sprintf("repeat(%s,%d,%d)", g.key(), low, high), func(c *compilation) (fragment, error) {
		if low < 0 || high < -1 || high >= 0 && low > high {
			return nil, fmt.Errorf("grammar: cannot repeat %d to %d times", low, high)
		}
		f, err := g.fragment(c)
		return repeat(f, low, high), err
	}}
}

// Optional is a grammar or nothing.
func Optional(g Grammar) Grammar { return Repeat(g, 0, 1) }

// combine makes a grammar of several.
func combine(name string, parts []Grammar, join func(...fragment) fragment) Grammar {
	keys := make([]string, len(parts))
	for i, p := range parts {
		keys[i] = p.key()
	}
	return part{name + "(" + strings.Join(keys, ",") + ")", func(c *compilation) (fragment, error) {
		fragments := make([]fragment, len(parts))
		for i, p := range parts {
			f, err := p.fragment(c)
			if err != nil {
				return nil, err
			}
			fragments[i] = f
		}
		return join(fragments...), nil
	}}
}

// JSONOptions say how JSON is written.
type JSONOptions struct {
	Whitespace Whitespace // default SingleSpaces
	// Closed makes objects with declared properties have no others where their schema does not say
	// (additionalProperties absent); JSON Schema allows others then.
	Closed bool
}

// JSONObject is any JSON object. An object may repeat a key, which JSON allows. Numbers have at most 20 digits before
// and after the point and an exponent of at most two. Nil options are the defaults.
func JSONObject(opts *JSONOptions) Grammar {
	o := orDefaults(opts)
	return part{fmt.Sprintf("object(%v)", o), func(c *compilation) (fragment, error) {
		if err := o.check(); err != nil {
			return nil, err
		}
		return call(c.anyJSON(o.Whitespace).object), nil
	}}
}

// JSONSchema is the JSON documents that a schema allows; the package comment has the keywords. Nil options are the
// defaults.
func JSONSchema(schema json.RawMessage, opts *JSONOptions) Grammar {
	o, text := orDefaults(opts), string(schema)
	return part{fmt.Sprintf("schema(%v,%q)", o, text), func(c *compilation) (fragment, error) {
		if err := o.check(); err != nil {
			return nil, err
		}
		return c.schema([]byte(text), o)
	}}
}

func orDefaults(opts *JSONOptions) JSONOptions {
	if opts == nil {
		return JSONOptions{}
	}
	return *opts
}

func (o JSONOptions) check() error {
	if o.Whitespace < SingleSpaces || o.Whitespace > AnySpaces {
		return errors.New("grammar: unknown Whitespace")
	}
	return nil
}
