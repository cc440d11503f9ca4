// Package grammar compiles constraints on a model's output into masks of the tokens that may come next, so that what a
// model samples is always of the form asked for: JSON, JSON by a schema, a regular expression, one of several texts, or
// a tool call.
//
//	v, err := grammar.NewVocabulary(tokens, []int32{end})                   // once for a tokenizer
//	c, err := cache.Compile(grammar.JSONSchema(schema, nil), v)             // once for a schema
//	m := c.Matcher()                                                        // once for a sequence
//	for !m.Ended() {
//		m.Mask(mask)                                                        // beside the forward pass
//		id := sample(logits, mask)
//		err := m.Accept(id)
//	}
//
// A text may be spelled by any tokens, those with parts of characters among them. Texts are UTF-8. A mask allows
// exactly the tokens after which some text of the grammar can still be completed, so it is never empty before the end.
//
// # JSON Schema
//
// Supported are type (also a list), enum, const, properties, required, additionalProperties, items, prefixItems,
// minItems, maxItems, minLength, maxLength, pattern, format (see below), minimum, maximum, exclusiveMinimum,
// exclusiveMaximum, multipleOf (a whole number up to 1,000), anyOf, oneOf, allOf, $ref within the document, also
// recursive, and OpenAPI's nullable. Annotations such as title and default are passed over. Any other keyword is an
// error, never ignored. What is written is a subset of what a schema allows:
//
//   - Properties come in the order of the schema, others after them. A key that is not declared may come twice.
//   - oneOf is treated as anyOf: its alternatives should exclude one another.
//   - A schema without a type whose keywords are all of some types has only values of these types.
//   - Numbers have at most 20 digits before and after the point and an exponent of at most two, which float64 holds.
//     Integers, and numbers with bounds, have no exponent. Bounds hold exactly, digit by digit.
//   - In strings with a pattern or format, and in keys, only what must be escaped is. Patterns have the syntax of Go's
//     package regexp, and match anywhere in a string unless they say ^ and $.
//   - Formats are date, time, date-time, duration, email, hostname, ipv4, ipv6, uuid and uri, each in its usual form.
//   - Values of enum and const are written as in the schema, whole numbers without a fraction or exponent.
//
// # How it works
//
// A grammar becomes rules, and a rule a deterministic automaton over bytes that calls other rules: a pushdown
// automaton. Its configurations are computed when they first occur, and kept. Masks are found over a trie of the
// vocabulary, in two parts: what depends on a state only, which is kept by state, and the few tokens that depend on
// what follows the rule (XGrammar, https://arxiv.org/abs/2411.15100). Limits bound the compilation, and what is kept
// afterwards is bounded too.
package grammar

import (
	"cmp"
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
	// fragment makes the automaton. What is wrong with the grammar unwinds by a panic; see failure.
	fragment(c *compilation) fragment
}

// part is a Grammar.
type part struct {
	id   string
	make func(c *compilation) fragment
}

func (p part) key() string                      { return p.id }
func (p part) fragment(c *compilation) fragment { return p.make(c) }

// Literal is one text. Any tokens may spell it, but no control tokens.
func Literal(text string) Grammar {
	return part{fmt.Sprintf("literal(%q)", text), func(*compilation) fragment {
		if !utf8.ValidString(text) {
			fail(fmt.Errorf("grammar: literal %q is not UTF-8", text))
		}
		return literal(text)
	}}
}

// Token is one token of the vocabulary as a whole, such as a control token that begins a tool call.
func Token(id int32) Grammar {
	return part{fmt.Sprintf("token(%d)", id), func(c *compilation) fragment {
		switch v := c.vocabulary; {
		case id < 0 || int(id) >= len(v.tokens):
			fail(fmt.Errorf("grammar: token %d is outside the vocabulary of %d", id, len(v.tokens)))
		case v.isEnd[id]:
			fail(fmt.Errorf("grammar: token %d ends the sequence and cannot be within a grammar", id))
		}
		return token(id)
	}}
}

// Text is free text: any UTF-8, also none, that contains none of the stops. So a grammar can tell where text ends that
// is followed by one of them.
func Text(stops ...string) Grammar {
	return part{fmt.Sprintf("text(%q)", stops), func(c *compilation) fragment {
		for _, stop := range stops {
			if stop == "" || !utf8.ValidString(stop) {
				fail(fmt.Errorf("grammar: stop %q of a text must be UTF-8 and not empty", stop))
			}
		}
		text := repeat(runes(anyRune), 0, -1)
		if len(stops) == 0 {
			return text
		}
		return intersect(c.budget, build(text, c.budget), stopFree(stops, c.budget)).fragment
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
	return part{fmt.Sprintf("regex(%q)", expression), func(c *compilation) fragment {
		re, err := parsePattern(expression)
		if err != nil {
			fail(fmt.Errorf("grammar: %w", err))
		}
		return build(pattern(re, runes), c.budget).fragment
	}}
}

// Sequence is one grammar after the other.
func Sequence(parts ...Grammar) Grammar { return combine("sequence", parts, sequence) }

// Alternation is one of the grammars. Without any, no text is allowed, which Compile reports.
func Alternation(parts ...Grammar) Grammar { return combine("alternation", parts, anyOf) }

// Repeat is a grammar low to high times; high -1 is without bound.
func Repeat(g Grammar, low, high int) Grammar {
	return part{fmt.Sprintf("repeat(%s,%d,%d)", g.key(), low, high), func(c *compilation) fragment {
		if low < 0 || high < -1 || high >= 0 && low > high {
			fail(fmt.Errorf("grammar: cannot repeat %d to %d times", low, high))
		}
		return repeat(g.fragment(c), low, high)
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
	return part{name + "(" + strings.Join(keys, ",") + ")", func(c *compilation) fragment {
		fragments := make([]fragment, len(parts))
		for i, p := range parts {
			fragments[i] = p.fragment(c)
		}
		return join(fragments...)
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
	return written("object", opts, "", func(c *compilation, o JSONOptions) fragment {
		return call(c.anyJSON(o.Whitespace).object)
	})
}

// JSONSchema is the JSON documents that a schema allows; the package comment has the keywords. Nil options are the
// defaults.
func JSONSchema(schema json.RawMessage, opts *JSONOptions) Grammar {
	text := string(schema)
	return written("schema", opts, text, func(c *compilation, o JSONOptions) fragment { return c.schema([]byte(text), o) })
}

// written is a grammar of JSON. text is what makes it differ from others of its kind.
func written(kind string, opts *JSONOptions, text string, texts func(*compilation, JSONOptions) fragment) Grammar {
	var o JSONOptions
	if opts != nil {
		o = *opts
	}
	return part{fmt.Sprintf("%s(%v,%q)", kind, o, text), func(c *compilation) fragment {
		if o.Whitespace < SingleSpaces || o.Whitespace > AnySpaces {
			fail(errors.New("grammar: unknown Whitespace"))
		}
		return texts(c, o)
	}}
}

// Limits bound the time and memory of a compilation. A zero field means its default.
type Limits struct {
	SchemaBytes int // length of a schema; default 256 KiB
	Depth       int // nesting of the brackets of a schema; default 128
	Repeat      int // bound of one repetition: maxLength, maxItems, {n}; default 8,192
	States      int // states of all automata of a grammar; default 400,000
	Rules       int // distinct subschemas after references and alternatives are combined; default 10,000
	Work        int // elementary steps of building automata, about 20 ns each; default 50,000,000
}

// LimitError says which limit a grammar exceeds.
type LimitError struct {
	Limit string // name of the field of Limits
	Max   int    // its value
	What  string // what was compiled
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("grammar: %s exceeds the limit %s of %d; simplify it or raise the limit", e.What, e.Limit, e.Max)
}

// withDefaults fills the zero fields.
func (l Limits) withDefaults() Limits {
	return Limits{
		SchemaBytes: cmp.Or(l.SchemaBytes, 256<<10), Depth: cmp.Or(l.Depth, 128), Repeat: cmp.Or(l.Repeat, 8192),
		States: cmp.Or(l.States, 400_000), Rules: cmp.Or(l.Rules, 10_000), Work: cmp.Or(l.Work, 50_000_000),
	}
}

// budget counts what a compilation has used. Exceeding it unwinds by a panic with a *LimitError, which Compile turns
// into its error: automata are built by deep recursion, where an error result of each call would hide the construction.
type budget struct {
	limits Limits
	states int
	work   int
}

// addState counts one state.
func (b *budget) addState() {
	if b.states++; b.states > b.limits.States {
		panic(&LimitError{"States", b.limits.States, "the grammar"})
	}
}

// spend counts n steps of work.
func (b *budget) spend(n int) {
	if b.work += n; b.work > b.limits.Work {
		panic(&LimitError{"Work", b.limits.Work, "the grammar"})
	}
}

// checkRepeat bounds one repetition.
func (b *budget) checkRepeat(n int, what string) {
	if n > b.limits.Repeat {
		panic(&LimitError{"Repeat", b.limits.Repeat, fmt.Sprintf("%s %d", what, n)})
	}
}

// failure is what is wrong with a grammar. It unwinds a compilation by a panic, as a *LimitError does.
type failure struct{ error }

func fail(err error) { panic(failure{err}) }

// catch stores the error of a compilation that a panic has ended in err, and lets every other panic pass.
func catch(err *error) {
	switch problem := recover().(type) {
	case nil:
	case *LimitError:
		*err = problem
	case failure:
		*err = problem.error
	default:
		panic(problem)
	}
}

// compilation holds the rules of one grammar while they are made.
type compilation struct {
	vocabulary *Vocabulary
	budget     *budget
	rules      []*dfa // nil until defined
	byKey      map[string]int32
	json       map[Whitespace]jsonRules
}

func newCompilation(v *Vocabulary, b *budget) *compilation {
	return &compilation{vocabulary: v, budget: b, byKey: map[string]int32{}, json: map[Whitespace]jsonRules{}}
}

// newRule makes a rule to be defined later, so that it can refer to itself.
func (c *compilation) newRule() int32 {
	if len(c.rules) >= c.budget.limits.Rules {
		panic(&LimitError{"Rules", c.budget.limits.Rules, "the grammar"})
	}
	c.rules = append(c.rules, nil)
	return int32(len(c.rules) - 1)
}

// define sets the texts of a rule. The empty text must not be one of them.
func (c *compilation) define(rule int32, f fragment) { c.rules[rule] = build(f, c.budget) }

// shared returns the rule of a key, which it makes if needed.
func (c *compilation) shared(key string, make func() *dfa) int32 {
	if rule, ok := c.byKey[key]; ok {
		return rule
	}
	rule := c.newRule()
	c.byKey[key] = rule
	c.rules[rule] = make()
	return rule
}
