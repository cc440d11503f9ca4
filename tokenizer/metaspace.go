package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// metaspace replaces spaces by another character, prepends one, and splits before each.
type metaspace struct {
	replacement string
	scheme      prependScheme
	split       bool
}

// prependScheme says to which pieces a replacement is prepended.
type prependScheme uint8

const (
	prependAlways prependScheme = iota
	prependFirst                // those at the beginning of the text
	prependNever
)

var prependSchemes = map[string]prependScheme{
	"always": prependAlways, "first": prependFirst, "never": prependNever,
}

func (m *metaspace) apply(p piece, emit func(piece)) {
	p = p.replaced(matchString(" "), m.replacement)
	wanted := m.scheme == prependAlways || m.scheme == prependFirst && p.first()
	if wanted && !strings.HasPrefix(p.text, m.replacement) {
		p = p.prepend(m.replacement)
	}
	if !m.split {
		emit(p)
		return
	}
	cutStep{find: matchString(m.replacement), behavior: mergedWithNext}.apply(p, emit)
}

// metaspaceFile is the component of pre-tokenizers and decoders.
type metaspaceFile struct {
	Replacement string  `json:"replacement"`
	Scheme      *string `json:"prepend_scheme"`
	AddPrefix   *bool   `json:"add_prefix_space"` // in files older than prepend_scheme
	Split       *bool   `json:"split"`
}

func newMetaspace(c metaspaceFile) (*metaspace, error) {
	if utf8.RuneCountInString(c.Replacement) != 1 {
		return nil, fmt.Errorf("replacement %q is not one character", c.Replacement)
	}
	m := &metaspace{replacement: c.Replacement, split: isOn(c.Split)}
	switch {
	case c.Scheme == nil && isOn(c.AddPrefix):
	case c.Scheme == nil:
		m.scheme = prependNever
	default:
		scheme, ok := prependSchemes[*c.Scheme]
		if !ok {
			return nil, fmt.Errorf("prepend_scheme %q is not supported", *c.Scheme)
		}
		m.scheme = scheme
	}
	return m, nil
}

// metaspaceStage replaces the replacement by a space, and drops it from the first token.
type metaspaceStage struct {
	replacement string
	drop        bool
}

func metaspaceDecoder(c metaspaceFile, _ bool) (func() stage, error) {
	m, err := newMetaspace(c)
	return func() stage { return &metaspaceStage{m.replacement, m.scheme != prependNever} }, err
}

func (s *metaspaceStage) push(text string, emit func(string)) {
	space := " "
	if s.drop {
		space, s.drop = "", false
	}
	emit(strings.ReplaceAll(text, s.replacement, space))
}

func (*metaspaceStage) flush(func(string)) {}
