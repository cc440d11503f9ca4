package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// wrapping is the special tokens that a post-processor puts around a text.
type wrapping struct{ before, after []int32 }

// parsePostProcessor reads what happens to a single text; pairs of texts are not a thing of language models.
func parsePostProcessor(raw json.RawMessage, valid func(int32) bool) (wrapping, error) {
	var w wrapping
	if isNull(raw) {
		return w, nil
	}
	steps, err := flatten(raw, "post_processor", "processors")
	if err != nil {
		return w, err
	}
	templates := 0
	for _, step := range steps {
		switch step.kind {
		case "ByteLevel": // changes offsets only
			err = decodeStrict(step.raw, new(byteLevel))
		case "TemplateProcessing":
			if templates++; templates > 1 {
				return w, errors.New("post_processor with two TemplateProcessing is not supported")
			}
			w, err = parseTemplate(step.raw, valid)
		default:
			err = errors.New("it is not supported, only ByteLevel, TemplateProcessing and Sequence")
		}
		if err != nil {
			return w, fmt.Errorf("post_processor %q: %w", step.kind, err)
		}
	}
	return w, nil
}

// templateFile is a TemplateProcessing.
type templateFile struct {
	Type          string          `json:"type"`
	Single        []templatePiece `json:"single"`
	Pair          json.RawMessage `json:"pair"`
	SpecialTokens map[string]struct {
		ID     string   `json:"id"`
		IDs    []int32  `json:"ids"`
		Tokens []string `json:"tokens"`
	} `json:"special_tokens"`
}

// templatePiece is one of the two.
type templatePiece struct {
	SpecialToken, Sequence *struct {
		ID     string `json:"id"`
		TypeID int    `json:"type_id"`
	}
}

func parseTemplate(raw json.RawMessage, valid func(int32) bool) (wrapping, error) {
	var w wrapping
	var f templateFile
	if err := decodeStrict(raw, &f); err != nil {
		return w, err
	}
	side, texts := &w.before, 0
	for _, p := range f.Single {
		switch {
		case p.Sequence != nil && p.SpecialToken == nil:
			side, texts = &w.after, texts+1
		case p.SpecialToken != nil && p.Sequence == nil:
			special, ok := f.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return w, fmt.Errorf("special_tokens lacks %q", p.SpecialToken.ID)
			}
			*side = append(*side, special.IDs...)
		default:
			return w, errors.New("a piece of single must be a SpecialToken or a Sequence")
		}
	}
	if texts != 1 {
		return w, fmt.Errorf("single has the text %d times; only once is supported", texts)
	}
	for _, id := range slices.Concat(w.before, w.after) {
		if !valid(id) {
			return w, fmt.Errorf("special_tokens has the id %d, which is not in the vocabulary", id)
		}
	}
	return w, nil
}
