package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// processor is a component that changes the ids of a text; special says whether it may add tokens.
type processor func(t *Tokenizer, e *encoding, special bool)

// processorReader parses a component; valid reports whether an id exists.
type processorReader func(raw json.RawMessage, valid func(int32) bool) ([]processor, error)

// processors are the parsers of the components of tokenizer.json.
var processors = map[string]processorReader{
	"ByteLevel":          parsedWith(byteLevelProcessor),
	"TemplateProcessing": parsedWith(templateProcessor),
	"BertProcessing":     parsedWith(pairProcessor),
	"RobertaProcessing":  parsedWith(robertaProcessor),
}

// parsePostProcessor reads the processing of single texts; language models have no use for pairs of texts.
func parsePostProcessor(raw json.RawMessage, valid func(int32) bool) (out []processor, err error) {
	err = components(raw, "post_processor", "processors", processors, func(part component, read processorReader) error {
		p, err := read(part.raw, valid)
		out = append(out, p...)
		return err
	})
	return out, err
}

func byteLevelProcessor(c byteLevelFile, _ func(int32) bool) ([]processor, error) {
	if !isOn(c.TrimOffsets) {
		return nil, nil
	}
	return []processor{trimOffsets(isOn(c.AddPrefix))}, nil
}

// trimOffsets excludes the spaces at the ends of tokens from their spans. prefixed says that a space was put before the
// text: a single space before the first token is not part of the text.
func trimOffsets(prefixed bool) processor {
	return func(t *Tokenizer, e *encoding, _ bool) {
		for i := range e.ids {
			text, at := e.surfaceOf(t, i), &e.spans[i]
			leading := utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeftFunc(text, isByteLevelSpace))
			trailing := utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimRightFunc(text, isByteLevelSpace))
			if leading == 1 && prefixed && (i == 0 || at.Start == 0) {
				leading = 0
			}
			for ; leading > 0 && at.Start < at.End; leading-- {
				_, n := utf8.DecodeRuneInString(e.text[at.Start:at.End])
				at.Start += n
			}
			if !e.hasBefore(at.End, trailing) {
				continue
			}
			for ; trailing > 0 && at.Start < at.End; trailing-- {
				_, n := utf8.DecodeLastRuneInString(e.text[at.Start:at.End])
				at.End -= n
			}
		}
	}
}

// isByteLevelSpace reports whether r is white space, or the space of the byte-level alphabet.
func isByteLevelSpace(r rune) bool { return r == alphabet[' '] || unicode.IsSpace(r) }

// hasBefore reports whether the text has n characters before an offset: if not, the reference trims nothing.
func (e *encoding) hasBefore(end, n int) bool {
	return end >= n*utf8.UTFMax || utf8.RuneCountInString(e.text[:end]) >= n
}

// pairFile is the tokens before and after a text, each a text and an id.
type pairFile struct{ Cls, Sep []json.RawMessage }

func pairProcessor(c pairFile, valid func(int32) bool) ([]processor, error) {
	var before, after int32
	for _, p := range []struct {
		from []json.RawMessage
		to   *int32
	}{{c.Cls, &before}, {c.Sep, &after}} {
		if len(p.from) != 2 || json.Unmarshal(p.from[1], p.to) != nil {
			return nil, errors.New("cls and sep must each have a text and an id")
		}
	}
	return wrapping([]int32{before}, []int32{after}, valid)
}

func robertaProcessor(c struct {
	byteLevelFile
	pairFile
}, valid func(int32) bool) ([]processor, error) {
	wrap, err := pairProcessor(c.pairFile, valid)
	if isOn(c.TrimOffsets) {
		wrap = append([]processor{trimOffsets(isOn(c.AddPrefix))}, wrap...)
	}
	return wrap, err
}

// wrapping returns a processor that puts tokens before and after a text.
func wrapping(before, after []int32, valid func(int32) bool) ([]processor, error) {
	for _, ids := range [][]int32{before, after} {
		for _, id := range ids {
			if !valid(id) {
				return nil, fmt.Errorf("it has the id %d, which is not in the vocabulary", id)
			}
		}
	}
	return []processor{func(_ *Tokenizer, e *encoding, special bool) {
		if special {
			e.wrap(before, after)
		}
	}}, nil
}

// templateFile is the component TemplateProcessing.
type templateFile struct {
	Single        []templatePiece `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// templatePiece has one of its two fields.
type templatePiece struct {
	SpecialToken, Sequence *struct {
		ID string `json:"id"`
	}
}

func templateProcessor(f templateFile, valid func(int32) bool) ([]processor, error) {
	var before, after []int32
	side, texts := &before, 0
	for _, p := range f.Single {
		switch {
		case p.Sequence != nil && p.SpecialToken == nil:
			side, texts = &after, texts+1
		case p.SpecialToken != nil && p.Sequence == nil:
			special, ok := f.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return nil, fmt.Errorf("special_tokens lacks %q", p.SpecialToken.ID)
			}
			*side = append(*side, special.IDs...)
		default:
			return nil, errors.New("a piece of single must be a SpecialToken or a Sequence")
		}
	}
	if texts != 1 {
		return nil, fmt.Errorf("single has the text %d times; only once is supported", texts)
	}
	return wrapping(before, after, valid)
}
