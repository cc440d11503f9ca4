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
var preTokenizers = map[string]func(json.RawMessage) (step, error){
	"Split":              parsed(splitStep),
	"Digits":             parsed(digitsStep),
	"Punctuation":        parsed(punctuationStep),
	"CharDelimiterSplit": parsed(delimiterStep),
	"FixedLength":        parsed(fixedLengthStep),
	"Whitespace":         func(json.RawMessage) (step, error) { return words(), nil },
	"WhitespaceSplit":    fixed[step](cutStep{find: matchRune(unicode.IsSpace), behavior: removed}),
	"ByteLevel":          nil,
	"Metaspace":          nil,
}

func parsePreTokenizer(raw json.RawMessage) (p preTokenizer, err error) {
	err = components(raw, "pre_tokenizer", "pretokenizers", preTokenizers, p.add)
	return p, err
}

func (p *preTokenizer) add(part component, read func(json.RawMessage) (step, error)) error {
	if p.byteLevelLast {
		p.steps, p.byteLevelLast = append(p.steps, byteLevelStep{}), false
	}
	switch part.kind {
	case "ByteLevel":
		if p.byteLevel {
			return errors.New("it is repeated, which is not supported")
		}
		var c byteLevelFile
		if err := json.Unmarshal(part.raw, &c); err != nil {
			return err
		}
		if isOn(c.AddPrefix) {
			p.steps = append(p.steps, prefixStep{})
		}
		if isOn(c.UseRegex) {
			p.steps = append(p.steps, cutStep{find: matchRegex(gpt2Words())})
		}
		p.byteLevel, p.byteLevelLast = true, true
		return nil
	case "Metaspace":
		if p.byteLevel {
			return errors.New("it is not supported after ByteLevel")
		}
		m, err := parsed(newMetaspace)(part.raw)
		if err != nil {
			return err
		}
		p.first = p.first || m.scheme == prependFirst
		p.steps = append(p.steps, m)
		return nil
	}
	s, err := read(part.raw)
	p.steps = append(p.steps, s)
	return err
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

func splitStep(c struct {
	Pattern  patternFile
	Behavior string
	Invert   bool
}) (step, error) {
	find, err := c.Pattern.matcher()
	if err != nil {
		return nil, err
	}
	return cutting(find, c.Behavior, c.Invert)
}

func cutting(find matcher, name string, invert bool) (step, error) {
	behavior, ok := behaviors[name]
	if !ok {
		return nil, fmt.Errorf("behavior %q is not supported", name)
	}
	return cutStep{find: find, invert: invert, behavior: behavior}, nil
}

func digitsStep(c struct {
	Individual bool `json:"individual_digits"`
}) (step, error) {
	if c.Individual {
		return cutStep{find: matchRune(isNumber)}, nil
	}
	return cutStep{find: matchRune(isNumber), behavior: contiguous}, nil
}

func punctuationStep(c struct{ Behavior *string }) (step, error) {
	name := "Isolated"
	if c.Behavior != nil {
		name = *c.Behavior
	}
	return cutting(matchRune(isPunctuation), name, false)
}

func delimiterStep(c struct{ Delimiter string }) (step, error) {
	if utf8.RuneCountInString(c.Delimiter) != 1 {
		return nil, fmt.Errorf("delimiter %q is not one character", c.Delimiter)
	}
	return cutting(matchString(c.Delimiter), "Removed", false)
}

func fixedLengthStep(c struct{ Length *int }) (step, error) {
	if c.Length == nil {
		return chunkStep(5), nil
	}
	if *c.Length < 1 {
		return nil, fmt.Errorf("length %d is not supported: it must be 1 or more", *c.Length)
	}
	return chunkStep(*c.Length), nil
}
