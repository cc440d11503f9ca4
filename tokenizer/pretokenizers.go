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

// plan is a pre-tokenizer: the steps, and what the tokenizer has to know of them.
type plan struct {
	steps      []step
	spells     bool // one of them writes bytes in the alphabet
	spellsLast bool // and that would be the last, but is left to be decided
	first      bool // one of them asks where the text begins
}

// preTokenizers are the components of tokenizer.json that only cut.
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

func parsePreTokenizer(raw json.RawMessage) (plan, error) {
	var p plan
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

func (p *plan) add(part component, last bool) error {
	read, known := preTokenizers[part.kind]
	switch {
	case !known:
		return unsupported("this", part.kind, preTokenizers)
	case part.kind == "ByteLevel":
		return p.addByteLevel(part.raw, last)
	case part.kind == "Metaspace":
		if p.spells {
			return errors.New("it is not supported behind ByteLevel")
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
func (p *plan) addByteLevel(raw json.RawMessage, last bool) error {
	if p.spells {
		return errors.New("it is there twice, and only once is supported")
	}
	var c byteLevel
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if isOn(c.AddPrefix) {
		p.steps = append(p.steps, prefixStep{})
	}
	if isOn(c.UseRegex) {
		p.steps = append(p.steps, cutStep{find: matchRegex(gpt2Words())})
	}
	p.spells, p.spellsLast = true, last
	if !last {
		p.steps = append(p.steps, spellStep{})
	}
	return nil
}

// gpt2Words is the split of a ByteLevel with use_regex: contractions, and runs of letters, of digits and of other
// characters with the space before them.
var gpt2Words = sync.OnceValue(func() *onig.Regexp {
	return mustCompile(gpt2Pattern)
})

// mustCompile compiles a pattern of our own.
func mustCompile(pattern string) *onig.Regexp {
	re, err := onig.Compile(pattern)
	if err != nil {
		panic("tokenizer: " + err.Error())
	}
	return re
}

// words cuts words and runs of other characters, and drops white space.
func words() step {
	return cutStep{find: matchRegex(mustCompile(`[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d\s]+`)),
		invert: true, behavior: removed}
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
