package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// build makes a tokenizer from the contents of tokenizer.json. Unknown fields of components are ignored, as in the
// reference; unknown components are errors.
func build(data []byte) (*Tokenizer, error) {
	file, err := object(string(data))
	if err != nil {
		return nil, err
	}
	known := []string{
		"version", "truncation", "padding", "added_tokens",
		"normalizer", "pre_tokenizer", "post_processor", "decoder", "model",
	}
	for name := range file {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("field %q is not known", name)
		}
	}
	if v, ok := file["version"]; ok && v != `"1.0"` {
		return nil, fmt.Errorf("version %s is not supported, only 1.0", v)
	}
	t := &Tokenizer{}
	var byteLevel bool
	if t.normalizers, byteLevel, err = parseNormalizers(member(file, "normalizer")); err != nil {
		return nil, err
	}
	pre, err := parsePreTokenizer(member(file, "pre_tokenizer"))
	if err != nil {
		return nil, err
	}
	if pre.byteLevel && byteLevel {
		return nil, fmt.Errorf("ByteLevel is both a normalizer and a pre_tokenizer: only one of them is supported")
	}
	var added []addedToken
	if !isNull(member(file, "added_tokens")) {
		if err := json.Unmarshal(member(file, "added_tokens"), &added); err != nil {
			return nil, fmt.Errorf("added_tokens: %w", err)
		}
	}
	m, err := parseModel(file["model"], pre.byteLevel || byteLevel)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.setVocab(m, added); err != nil {
		return nil, err
	}
	t.steps = pre.steps
	switch { // the model takes either bytes or characters of the byte-level alphabet
	case pre.byteLevelLast && !m.byBytes:
		t.steps = append(t.steps, byteLevelStep{})
	case m.byBytes && !pre.byteLevelLast:
		t.fromByteLevel = true
	}
	t.tracksOrigins = pre.first && len(t.normalizers) > 0
	if t.decoder, err = parseDecoder(member(file, "decoder")); err != nil {
		return nil, err
	}
	t.setDecoding()
	t.processors, err = parsePostProcessor(member(file, "post_processor"), t.valid)
	return t, err
}

// member returns a member of an object.
func member(object map[string]string, name string) json.RawMessage {
	return json.RawMessage(object[name])
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// components calls read for the components of a section, with their parsers from known. field names the list of a
// Sequence.
func components[V any](
	raw json.RawMessage, what, field string, known map[string]V, read func(component, V) error,
) error {
	if isNull(raw) {
		return nil
	}
	parts, err := flatten(raw, what, field, 0)
	if err != nil {
		return err
	}
	for _, part := range parts {
		parse, ok := known[part.kind]
		if !ok {
			names := append(slices.Sorted(maps.Keys(known)), "Sequence")
			return fmt.Errorf("%s %q is not supported, only %s", what, part.kind, strings.Join(names, ", "))
		}
		if err := read(part, parse); err != nil {
			return fmt.Errorf("%s %q: %w", what, part.kind, err)
		}
	}
	return nil
}

// parsed returns the parser of a component whose options are a C.
func parsed[C, V any](build func(c C) (V, error)) func(json.RawMessage) (V, error) {
	read := parsedWith(func(c C, _ struct{}) (V, error) { return build(c) })
	return func(raw json.RawMessage) (V, error) { return read(raw, struct{}{}) }
}

// parsedWith is parsed for a function that needs to know more than the options.
func parsedWith[C, A, V any](build func(c C, more A) (V, error)) func(json.RawMessage, A) (V, error) {
	return func(raw json.RawMessage, more A) (v V, err error) {
		var c C
		if err := json.Unmarshal(raw, &c); err != nil {
			return v, err
		}
		return build(c, more)
	}
}

// fixed returns the parser of a component without options.
func fixed[V any](v V) func(json.RawMessage) (V, error) {
	return func(json.RawMessage) (V, error) { return v, nil }
}

// component is one component of a file, not a Sequence.
type component struct {
	kind string
	raw  json.RawMessage
}

// maxNesting bounds the depth of Sequences within Sequences.
const maxNesting = 20

// flatten lists the components of a Sequence, with those of nested ones, or the single component. field names the list.
func flatten(raw json.RawMessage, what, field string, depth int) ([]component, error) {
	var head struct{ Type string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if head.Type != "Sequence" {
		return []component{{head.Type, raw}}, nil
	}
	if depth == maxNesting {
		return nil, fmt.Errorf("%s: Sequences are nested deeper than %d", what, maxNesting)
	}
	var members map[string]json.RawMessage
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if err := json.Unmarshal(members[field], &list); err != nil {
		return nil, fmt.Errorf("%s Sequence has no list %s", what, field)
	}
	var out []component
	for _, r := range list {
		inner, err := flatten(r, what, field, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, inner...)
	}
	return out, nil
}

// byteLevelFile is the component ByteLevel of pre-tokenizers, post-processors and decoders.
type byteLevelFile struct {
	AddPrefix   *bool `json:"add_prefix_space"`
	TrimOffsets *bool `json:"trim_offsets"`
	UseRegex    *bool `json:"use_regex"`
}

// isOn is the value of an option that is on by default.
func isOn(b *bool) bool { return b == nil || *b }
