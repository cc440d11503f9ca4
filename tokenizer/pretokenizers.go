package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/goart-dev/art/internal/onig"
)

// preTokenizer is the steps of a pre-tokenizer, and what the tokenizer has to know about them.
type preTokenizer struct {
	steps         []step
	byteLevel     bool // one of them is ByteLevel
	byteLevelLast bool // it is the last, and its conversion to the alphabet is not among the steps
	first         bool // one of them needs to know where the text begins
}

// preTokenizers are the parsers of the components of tokenizer.json; ByteLevel and Metaspace are parsed by add.
var preTokenizers = map[string]func(json.RawMessage) ([]step, error){
	"Split":              parseSplit,
	"Digits":             parseDigits,
	"Punctuation":        parsePunctuation,
	"CharDelimiterSplit": parseDelimiter,
	"FixedLength":        parseFixedLength,
	"Whitespace":         func(json.RawMessage) ([]step, error) { return []step{words()}, nil },
	"WhitespaceSplit": func(json.RawMessage) ([]step, error) {
		return []step{cutStep{find: matchRune(unicode.IsSpace), behavior: removed}}, nil
	},
	"ByteLevel": nil,
	"Metaspace": nil,
}

func parsePreTokenizer(raw json.RawMessage) (preTokenizer, error) {
	var p preTokenizer
	if isNull(raw) {
		return p, nil
	}
	parts, err := flatten(raw, "pre_tokenizer", "pretokenizers")
	if err != nil {
		return p, err
	}
	for i, part := range parts {
		if err := p.add(part, i == len(parts)-1); err != nil {
			return p, fmt.Errorf("pre_tokenizer %q: %w", part.kind, err)
		}
	}
	return p, nil
}

func (p *preTokenizer) add(part component, last bool) error {
	read, known := preTokenizers[part.kind]
	switch {
	case !known:
		return unsupported("component", part.kind, preTokenizers)
	case part.kind == "ByteLevel":
		return p.addByteLevel(part.raw, last)
	case part.kind == "Metaspace":
		if p.byteLevel {
			return errors.New("it is not supported after ByteLevel")
		}
		m, err := parseMetaspace(part.raw)
		if err != nil {
			return err
		}
		p.first = p.first || m.scheme == prependFirst
		p.steps = append(p.steps, m)
		return nil
	}
	steps, err := read(part.raw)
	p.steps = append(p.steps, steps...)
	return err
}

// addByteLevel adds the steps of a ByteLevel.
func (p *preTokenizer) addByteLevel(raw json.RawMessage, last bool) error {
	if p.byteLevel {
		return errors.New("it is repeated, which is not supported")
	}
	var c byteLevelFile
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if isOn(c.AddPrefix) {
		p.steps = append(p.steps, prefixStep{})
	}
	if isOn(c.UseRegex) {
		p.steps = append(p.steps, cutStep{find: matchRegex(gpt2Words())})
	}
	p.byteLevel, p.byteLevelLast = true, last
	if !last {
		p.steps = append(p.steps, byteLevelStep{})
	}
	return nil
}

// gpt2Words is the split of ByteLevel with use_regex: contractions, and runs of letters, of digits or of other
// characters with the space before them.
var gpt2Words = sync.OnceValue(func() *onig.Regexp {
	return mustCompile(gpt2Pattern)
})

// mustCompile compiles a constant pattern.
func mustCompile(pattern string) *onig.Regexp {
	re, err := onig.Compile(pattern)
	if err != nil {
		panic("tokenizer: " + err.Error())
	}
	return re
}

// words splits into words and runs of other characters, and drops white space.
func words() step {
	const word = `\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d`
	return cutStep{find: matchRegex(mustCompile(`[` + word + `]+|[^` + word + `\s]+`)), invert: true, behavior: removed}
}

func parseSplit(raw json.RawMessage) ([]step, error) {
	var c struct {
		Pattern  patternFile `json:"pattern"`
		Behavior string      `json:"behavior"`
		Invert   bool        `json:"invert"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	find, err := c.Pattern.matcher()
	if err != nil {
		return nil, err
	}
	return cutting(find, c.Behavior, c.Invert)
}

func cutting(find matcher, name string, invert bool) ([]step, error) {
	behavior, ok := behaviors[name]
	if !ok {
		return nil, fmt.Errorf("behavior %q is not supported", name)
	}
	return []step{cutStep{find: find, invert: invert, behavior: behavior}}, nil
}

func parseDigits(raw json.RawMessage) ([]step, error) {
	var c struct {
		Individual bool `json:"individual_digits"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if c.Individual {
		return []step{cutStep{find: matchRune(isNumber)}}, nil
	}
	return []step{cutStep{find: matchRune(isNumber), behavior: contiguous}}, nil
}

func parsePunctuation(raw json.RawMessage) ([]step, error) {
	c := struct {
		Behavior string `json:"behavior"`
	}{"Isolated"}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	return cutting(matchRune(isPunctuation), c.Behavior, false)
}

func parseDelimiter(raw json.RawMessage) ([]step, error) {
	var c struct {
		Delimiter string `json:"delimiter"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(c.Delimiter) != 1 {
		return nil, fmt.Errorf("delimiter %q is not one character", c.Delimiter)
	}
	return cutting(matchString(c.Delimiter), "Removed", false)
}

func parseFixedLength(raw json.RawMessage) ([]step, error) {
	c := struct {
		Length int `json:"length"`
	}{5}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if c.Length < 1 {
		return nil, fmt.Errorf("length %d is not supported: it must be 1 or more", c.Length)
	}
	return []step{chunkStep(c.Length)}, nil
}
