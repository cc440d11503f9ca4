package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// build makes a tokenizer of the contents of tokenizer.json. What the reference ignores is ignored here: fields of a
// component that it does not know. Components that are not known are errors.
func build(data []byte) (*Tokenizer, error) {
	file, err := object(string(data))
	if err != nil {
		return nil, err
	}
	known := []string{"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"}
	for name := range file {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("field %q is not known", name)
		}
	}
	if v, ok := file["version"]; ok && v != `"1.0"` {
		return nil, fmt.Errorf("version %s is not supported, only 1.0", v)
	}
	return assemble(file)
}

// assemble reads the parts of a file.
func assemble(file map[string]string) (*Tokenizer, error) {
	t := &Tokenizer{}
	var spells bool
	var err error
	if t.normalizers, spells, err = parseNormalizers(member(file, "normalizer")); err != nil {
		return nil, err
	}
	plan, err := parsePreTokenizer(member(file, "pre_tokenizer"))
	if err != nil {
		return nil, err
	}
	if plan.spells && spells {
		return nil, fmt.Errorf("ByteLevel is both a normalizer and a pre_tokenizer: only one of them is supported")
	}
	var added []addedToken
	if !isNull(member(file, "added_tokens")) {
		if err := json.Unmarshal(member(file, "added_tokens"), &added); err != nil {
			return nil, fmt.Errorf("added_tokens: %w", err)
		}
	}
	m, err := parseModel(file["model"], plan.spells || spells)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.setVocab(m, added); err != nil {
		return nil, err
	}
	t.setSteps(plan, spells, m.byBytes)
	if t.decoder, err = parseDecoder(member(file, "decoder")); err != nil {
		return nil, err
	}
	t.setBytes()
	t.processors, err = parsePostProcessor(member(file, "post_processor"), t.valid)
	return t, err
}

// member returns a member of an object.
func member(object map[string]string, name string) json.RawMessage {
	return json.RawMessage(object[name])
}

// setSteps chooses how pieces get to the model: one that works on bytes takes them as they are.
func (t *Tokenizer) setSteps(plan plan, spells, byBytes bool) {
	t.steps = plan.steps
	switch {
	case plan.spellsLast && !byBytes:
		t.steps = append(t.steps, spellStep{})
	case byBytes && !plan.spellsLast:
		t.unspell = true
	}
	t.tracks = plan.first && len(t.normalizers) > 0
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

// unsupported is the error for a component that is not known.
func unsupported[V any](what, kind string, known map[string]V) error {
	names := append(slices.Sorted(maps.Keys(known)), "Sequence")
	return fmt.Errorf("%s %q is not supported, only %s", what, kind, strings.Join(names, ", "))
}

// component is one part of a file that is not a Sequence.
type component struct {
	kind string
	raw  json.RawMessage
}

// maxNesting bounds Sequences within Sequences.
const maxNesting = 20

// flatten lists the components of a Sequence, of Sequences within it too, or the one that is there. field names the list.
func flatten(raw json.RawMessage, what, field string) ([]component, error) {
	return flattenAt(raw, what, field, 0)
}

func flattenAt(raw json.RawMessage, what, field string, depth int) ([]component, error) {
	kind, err := typeOf(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if kind != "Sequence" {
		return []component{{kind, raw}}, nil
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
		inner, err := flattenAt(r, what, field, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, inner...)
	}
	return out, nil
}

// byteLevel is the component of pre-tokenizers, post-processors and decoders.
type byteLevel struct {
	AddPrefix   *bool `json:"add_prefix_space"`
	TrimOffsets *bool `json:"trim_offsets"`
	UseRegex    *bool `json:"use_regex"`
}

// isOn is the value of a switch that is on when it is left out.
func isOn(b *bool) bool { return b == nil || *b }
