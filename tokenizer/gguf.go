package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// FromGGUF builds a tokenizer from the metadata of a GGUF file: its keys and values, as plain Go values (strings,
// bools, numbers of any type, slices of one of these or of any). It reads the keys that begin with "tokenizer.", for
// the models "gpt2" (byte-level BPE; "tokenizer.ggml.pre" names the pre-tokenizer), "llama" (SentencePiece BPE) and
// "t5" (SentencePiece Unigram). Ids are those of Hugging Face's tokenizer for the same vocabulary.
func FromGGUF(meta map[string]any) (*Tokenizer, error) {
	t, err := fromGGUF(ggufMeta(meta))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: GGUF: %w", err)
	}
	return t, nil
}

func fromGGUF(g ggufMeta) (*Tokenizer, error) {
	tokens, err := ggufList[string](g, "tokenizer.ggml.tokens")
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 || len(tokens) > maxID {
		return nil, fmt.Errorf("tokenizer.ggml.tokens has %d tokens", len(tokens))
	}
	kinds, err := g.kinds(len(tokens))
	if err != nil {
		return nil, err
	}
	var t *Tokenizer
	switch model, _ := g["tokenizer.ggml.model"].(string); model {
	case "gpt2":
		t, err = g.byteLevel(tokens, kinds)
	case "llama", "t5":
		t, err = g.sentencePiece(model, tokens, kinds)
	default:
		return nil, fmt.Errorf("tokenizer.ggml.model %q is not supported, only gpt2, llama and t5", model)
	}
	if err != nil {
		return nil, err
	}
	t.chat.templates = g.chatTemplates()
	return t, nil
}

// ggufMeta is the metadata.
type ggufMeta map[string]any

// chatTemplates returns the templates by name: "tokenizer.chat_template", and others as "tokenizer.chat_template.NAME".
func (g ggufMeta) chatTemplates() map[string]string {
	out := map[string]string{}
	for key, value := range g {
		source, isText := value.(string)
		name, ok := strings.CutPrefix(key, "tokenizer.chat_template")
		if !ok || !isText || name != "" && name[0] != '.' {
			continue
		}
		out[cmp.Or(strings.TrimPrefix(name, "."), DefaultTemplate)] = source
	}
	return out
}

// ggufList returns a list; an empty one if the key is missing.
func ggufList[T any](g ggufMeta, key string) ([]T, error) {
	switch list := g[key].(type) {
	case nil:
		return nil, nil
	case []T:
		return list, nil
	case []any:
		out := make([]T, len(list))
		for i, v := range list {
			var ok bool
			if out[i], ok = v.(T); !ok {
				return nil, fmt.Errorf("%s holds a %T", key, v)
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("%s is a %T", key, list)
	}
}

// ggufNumbers is ggufList for numbers that may also have the type U.
func ggufNumbers[T, U int8 | uint8 | int32 | uint32](g ggufMeta, key string) ([]T, error) {
	list, err := ggufList[T](g, key)
	if err == nil {
		return list, nil
	}
	others, second := ggufList[U](g, key)
	if second != nil {
		return nil, err
	}
	for _, n := range others {
		list = append(list, T(n))
	}
	return list, nil
}

// number returns a number of any type.
func (g ggufMeta) number(key string) (int64, bool) {
	switch n := reflect.ValueOf(g[key]); {
	case n.CanInt():
		return n.Int(), true
	case n.CanUint():
		return int64(min(n.Uint(), 1<<62)), true
	}
	return 0, false
}

// flag returns an option, or its default.
func (g ggufMeta) flag(key string, byDefault bool) bool {
	if on, ok := g[key].(bool); ok {
		return on
	}
	return byDefault
}

// id returns the id of a special token; absent if there is none.
func (g ggufMeta) id(name string, size int) int32 {
	if n, ok := g.number("tokenizer.ggml." + name + "_token_id"); ok && n >= 0 && n < int64(size) {
		return int32(n)
	}
	return absent
}

// kinds returns the types of the tokens: normal by default.
func (g ggufMeta) kinds(size int) ([]pieceKind, error) {
	const key = "tokenizer.ggml.token_type"
	numbers, err := ggufNumbers[int32, uint32](g, key)
	if err != nil {
		return nil, err
	}
	if numbers == nil {
		return slices.Repeat([]pieceKind{normalPiece}, size), nil
	}
	if len(numbers) != size {
		return nil, fmt.Errorf("%s has %d entries for %d tokens", key, len(numbers), size)
	}
	kinds := make([]pieceKind, size)
	for i, n := range numbers {
		kinds[i] = pieceKind(n)
	}
	return kinds, nil
}

// sentencePiece builds the models llama and t5.
func (g ggufMeta) sentencePiece(model string, tokens []string, kinds []pieceKind) (*Tokenizer, error) {
	scores, err := ggufList[float32](g, "tokenizer.ggml.scores")
	if err != nil {
		return nil, err
	}
	if len(scores) != len(tokens) {
		return nil, fmt.Errorf("tokenizer.ggml.scores has %d entries for %d tokens", len(scores), len(tokens))
	}
	chars, err := g.charsMap()
	if err != nil {
		return nil, err
	}
	m := &spModel{ // scores are added in float64, as llama.cpp and Hugging Face's library do
		kinds: kinds, bpe: model == "llama", perPart: true, byteFallback: slices.Contains(kinds, bytePiece),
		bos: g.id("bos", len(tokens)), eos: g.id("eos", len(tokens)),
		addBOS: g.flag("tokenizer.ggml.add_bos_token", model == "llama"),
		addEOS: g.flag("tokenizer.ggml.add_eos_token", model == "t5"),
		normalizer: spNormalizer{
			chars: chars, escape: true, dummyPrefix: g.flag("tokenizer.ggml.add_space_prefix", true),
			trim: g.flag("tokenizer.ggml.remove_extra_whitespaces", false),
		},
	}
	for i, text := range tokens {
		m.pieces = append(m.pieces, vocabPiece{text, float64(scores[i])})
	}
	return m.build()
}

// charsMap returns the table of replacements of a SentencePiece model; nil if there is none.
func (g ggufMeta) charsMap() (*charsMap, error) {
	const key = "tokenizer.ggml.precompiled_charsmap"
	data, err := ggufNumbers[uint8, int8](g, key)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return parseCharsMap(data)
}

// byteLevel builds the model gpt2.
func (g ggufMeta) byteLevel(tokens []string, kinds []pieceKind) (*Tokenizer, error) {
	name, _ := g["tokenizer.ggml.pre"].(string)
	pre, ok := ggufPatterns[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(ggufPatterns)), ", ")
		return nil, fmt.Errorf("tokenizer.ggml.pre %q is not supported, only %s", name, known)
	}
	merges, err := ggufList[string](g, "tokenizer.ggml.merges")
	if err != nil {
		return nil, err
	}
	f := &modelFile{kind: "BPE", byBytes: true, vocab: make(map[string]int32, len(tokens))}
	f.options.IgnoreMerges = pre.whole
	var added []addedToken
	for id, text := range tokens {
		if _, twice := f.vocab[text]; twice || text == "" {
			return nil, fmt.Errorf("token %d, %q, is empty or repeated", id, text)
		}
		f.vocab[text] = int32(id)
		if k := kinds[id]; k == controlPiece || k == userPiece || k == unknownPiece {
			added = append(added, addedToken{ID: int32(id), Content: text, Special: k != userPiece})
		}
	}
	for _, m := range merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok || strings.Contains(right, " ") {
			return nil, fmt.Errorf("merge %q must have two parts", m)
		}
		f.left, f.right = append(f.left, left), append(f.right, right)
	}
	t := &Tokenizer{}
	if pre.nfc {
		t.normalizers = []normalizer{formC}
	}
	for _, p := range pre.patterns {
		t.steps = append(t.steps, cutStep{find: matchRegex(mustCompile(p))})
	}
	if g.flag("tokenizer.ggml.add_space_prefix", false) {
		t.steps = append([]step{prefixStep{}}, t.steps...)
	}
	if err := t.setVocab(f, added); err != nil {
		return nil, err
	}
	t.decoder = decoder{func() stage { return &bytesStage{} }}
	t.setDecoding()
	if len(t.bytes) == 0 {
		return nil, errors.New("it has no tokens")
	}
	err = t.setEnds(g.id("bos", len(t.texts)), g.id("eos", len(t.texts)),
		g.flag("tokenizer.ggml.add_bos_token", pre.bos), g.flag("tokenizer.ggml.add_eos_token", false))
	return t, err
}
