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
