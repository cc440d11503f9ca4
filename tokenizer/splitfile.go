package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// parsePreTokenizer wants ByteLevel as the last step: the model works on bytes.
func parsePreTokenizer(raw json.RawMessage) (preTokenizer, error) {
	if isNull(raw) {
		return nil, errors.New("pre_tokenizer null is not supported: it must end in ByteLevel")
	}
	steps, err := flatten(raw, "pre_tokenizer", "pretokenizers")
	if err != nil {
		return nil, err
	}
	var out preTokenizer
	for i, step := range steps {
		s, err := parseSplitter(step)
		if err != nil {
			return nil, fmt.Errorf("pre_tokenizer %q: %w", step.kind, err)
		}
		if (step.kind == "ByteLevel") != (i == len(steps)-1) {
			return nil, fmt.Errorf("pre_tokenizer %q is not supported here: there must be one ByteLevel, as the last step", step.kind)
		}
		out = append(out, s...)
	}
	if len(steps) == 0 {
		return nil, errors.New("pre_tokenizer Sequence is empty: it must end in ByteLevel")
	}
	return out, nil
}

func parseSplitter(c component) ([]splitter, error) {
	switch c.kind {
	case "Split":
		return parseSplit(c.raw)
	case "Digits":
		return parseDigits(c.raw)
	case "ByteLevel":
		return parseByteLevel(c.raw)
	}
	return nil, errors.New("it is not supported, only Split, Digits, ByteLevel and Sequence")
}

func parseSplit(raw json.RawMessage) ([]splitter, error) {
	var c struct {
		Type    string `json:"type"`
		Pattern struct {
			Regex, String *string
		} `json:"pattern"`
		Behavior string `json:"behavior"`
		Invert   bool   `json:"invert"`
	}
	if err := decodeStrict(raw, &c); err != nil {
		return nil, err
	}
	d := delimiters{invert: c.Invert}
	var ok bool
	if d.behavior, ok = behaviors[c.Behavior]; !ok {
		return nil, fmt.Errorf("behavior %q is not supported", c.Behavior)
	}
	switch {
	case c.Pattern.Regex != nil && c.Pattern.String == nil:
		re, err := compileRegex(*c.Pattern.Regex)
		if err != nil {
			return nil, err
		}
		d.find = matchRegex(re)
	case c.Pattern.String != nil && *c.Pattern.String != "":
		d.find = matchString(*c.Pattern.String)
	default:
		return nil, errors.New("it has no pattern: set Regex or String")
	}
	return []splitter{d}, nil
}

func parseDigits(raw json.RawMessage) ([]splitter, error) {
	var c struct {
		Type       string `json:"type"`
		Individual bool   `json:"individual_digits"`
	}
	if err := decodeStrict(raw, &c); err != nil {
		return nil, err
	}
	if c.Individual {
		return []splitter{delimiters{find: matchDigit}}, nil
	}
	return []splitter{delimiters{find: matchDigit, behavior: contiguous}}, nil
}

// gpt2Words is the split that a ByteLevel with use_regex makes: contractions, and runs of letters, of digits and of
// other characters with the space before them.
const gpt2Words = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func parseByteLevel(raw json.RawMessage) ([]splitter, error) {
	var c byteLevel
	if err := decodeStrict(raw, &c); err != nil {
		return nil, err
	}
	var out []splitter
	if c.AddPrefix == nil || *c.AddPrefix {
		out = append(out, leadingSpace{})
	}
	if c.UseRegex == nil || *c.UseRegex {
		re, err := compileRegex(gpt2Words)
		if err != nil {
			return nil, err
		}
		out = append(out, delimiters{find: matchRegex(re)})
	}
	return out, nil
}
