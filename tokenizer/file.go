package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// tokenizerFile is tokenizer.json. Every part of it is read strictly: a field that is not known here may change the
// ids, so it is an error.
type tokenizerFile struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

// build makes a tokenizer of the contents of tokenizer.json.
func build(data []byte) (*Tokenizer, error) {
	var f tokenizerFile
	if err := decodeStrict(data, &f); err != nil {
		return nil, err
	}
	if !isNull(f.Truncation) || !isNull(f.Padding) {
		return nil, errors.New("truncation and padding are not supported: set both to null")
	}
	if f.Version != "" && f.Version != "1.0" {
		return nil, fmt.Errorf("version %q is not supported, only 1.0", f.Version)
	}
	t := &Tokenizer{}
	var err error
	if t.normalize, err = parseNormalizer(f.Normalizer); err != nil {
		return nil, err
	}
	if t.pre, err = parsePreTokenizer(f.PreTokenizer); err != nil {
		return nil, err
	}
	if t.added, err = newAddedVocabulary(f.AddedTokens, t.normalize); err != nil {
		return nil, err
	}
	if err := checkDecoder(f.Decoder); err != nil {
		return nil, err
	}
	if err := t.setModel(f.Model); err != nil {
		return nil, err
	}
	t.wrap, err = parsePostProcessor(f.PostProcessor, t.valid)
	return t, err
}

// decodeStrict is json.Unmarshal that takes no unknown field and no second value.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is text after the JSON value")
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// typeOf returns the "type" of a component.
func typeOf(raw json.RawMessage) (string, error) {
	var head struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(raw, &head)
	return head.Type, err
}

// component is one part of a file that is not a Sequence.
type component struct {
	kind string
	raw  json.RawMessage
}

// flatten lists the components of a Sequence, of Sequences within it too, or the one that is there. field names the list.
func flatten(raw json.RawMessage, what, field string) ([]component, error) {
	kind, err := typeOf(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if kind != "Sequence" {
		return []component{{kind, raw}}, nil
	}
	var members map[string]json.RawMessage
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if err := json.Unmarshal(members[field], &list); err != nil || len(members) != 2 {
		return nil, fmt.Errorf("%s Sequence is not supported: it must have type and %s only", what, field)
	}
	var out []component
	for _, r := range list {
		inner, err := flatten(r, what, field)
		if err != nil {
			return nil, err
		}
		out = append(out, inner...)
	}
	return out, nil
}

// byteLevel is the component of pre-tokenizers, post-processors and decoders. TrimOffsets changes no id.
type byteLevel struct {
	Type        string `json:"type"`
	AddPrefix   *bool  `json:"add_prefix_space"`
	TrimOffsets bool   `json:"trim_offsets"`
	UseRegex    *bool  `json:"use_regex"`
}

func checkDecoder(raw json.RawMessage) error {
	if isNull(raw) {
		return errors.New("decoder null is not supported, only ByteLevel")
	}
	kind, err := typeOf(raw)
	if err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if kind != "ByteLevel" {
		return fmt.Errorf("decoder %q is not supported, only ByteLevel", kind)
	}
	if err := decodeStrict(raw, new(byteLevel)); err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	return nil
}
