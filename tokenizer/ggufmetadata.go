package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ToGGUF is the inverse of [FromGGUF]: it returns the metadata of a GGUF file for the contents of a model's files, as
// llama.cpp's convert_hf_to_gguf.py writes it, for a model with that many embeddings. configJSON, of
// tokenizer_config.json, may be nil, and so may sentencePiece, of tokenizer.model, unless tokenizer.json is no
// byte-level BPE. A tokenizer that llama.cpp does not have is an error.
func ToGGUF(tokenizerJSON, configJSON, sentencePiece []byte, embeddings int) (map[string]any, error) {
	t, err := New(tokenizerJSON, configJSON)
	if err != nil {
		return nil, err
	}
	file, err := object(string(tokenizerJSON))
	if err != nil {
		return nil, err // New would have said so
	}
	meta := ggufMeta{}
	if len(sentencePiece) > 0 {
		err = meta.setPieces(t, sentencePiece, embeddings)
	} else {
		err = meta.setByteLevel(t, file, embeddings)
	}
	if err == nil {
		err = meta.setCommon(t)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: to GGUF: %w", err)
	}
	return meta, nil
}

// probe has what tokenizers cut differently.
const probe = "Hello, World's \t 1234567 3.14..\n\n  I'VE we'll $x_1=ąęść 中文字 日本語ひらがな " +
	"\u00a0🦙🦙 e\u0301 ㊿½ ---===\r\n end "

// setByteLevel sets what is specific to byte-level BPE.
func (g ggufMeta) setByteLevel(t *Tokenizer, file map[string]string, embeddings int) error {
	name, err := ggufPattern{}.nameOf(file)
	if err != nil {
		return err
	}
	m, err := parseModel(file["model"], true)
	if err != nil {
		return err
	}
	g["tokenizer.ggml.model"], g["tokenizer.ggml.pre"] = "gpt2", name
	texts := make(map[int32]string, len(m.vocab))
	for text, id := range m.vocab {
		texts[id] = text
	}
	if err := g.setTokens(t, embeddings, func(id int32) (string, pieceKind) {
		if text, ok := texts[id]; ok {
			return text, normalPiece
		}
		return "", unusedPiece
	}); err != nil {
		return err
	}
	merges := make([]string, len(m.left))
	for i, left := range m.left {
		if merges[i] = left + " " + m.right[i]; strings.Count(merges[i], " ") != 1 {
			return fmt.Errorf("the merge of %q and %q has spaces", left, m.right[i])
		}
	}
	g["tokenizer.ggml.merges"] = merges
	return nil
}

// setPieces sets what is specific to a SentencePiece model, whose scores tokenizer.json does not have.
func (g ggufMeta) setPieces(t *Tokenizer, data []byte, embeddings int) error {
	m, err := parseSentencePiece(data)
	if err != nil {
		return fmt.Errorf("tokenizer.model: %w", err)
	}
	if !m.bpe {
		return errors.New("tokenizer.model is Unigram, which llama.cpp has in other models only")
	}
	g["tokenizer.ggml.model"], g["tokenizer.ggml.pre"] = "llama", "default"
	g["tokenizer.ggml.add_space_prefix"] = m.normalizer.dummyPrefix
	if err := g.setTokens(t, embeddings, func(id int32) (string, pieceKind) {
		if int(id) < len(m.pieces) {
			return m.pieces[id].text, m.kinds[id]
		}
		return "", unusedPiece
	}); err != nil {
		return err
	}
	scores := make([]float32, embeddings)
	for i := range scores {
		const unused, added = -10000, -1000 // llama.cpp's
		switch _, isAdded := t.ids[g["tokenizer.ggml.tokens"].([]string)[i]]; {
		case i < len(m.pieces) && m.kinds[i] == pieceKind(g["tokenizer.ggml.token_type"].([]int32)[i]):
			scores[i] = float32(m.pieces[i].score)
		case isAdded:
			scores[i] = added
		default:
			scores[i] = unused
		}
	}
	g["tokenizer.ggml.scores"] = scores
	return nil
}

// setCommon sets special tokens and templates, and checks that the metadata is the same tokenizer.
func (g ggufMeta) setCommon(t *Tokenizer) error {
	special := t.SpecialTokens()
	for key, name := range map[string]string{
		"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "sep_token": "seperator", "pad_token": "padding",
		"cls_token": "cls", "mask_token": "mask",
	} {
		if id, ok := t.ids[special[key]]; ok {
			g["tokenizer.ggml."+name+"_token_id"] = uint32(id) //nolint:gosec // not negative
		}
	}
	if err := g.setEnds(t); err != nil {
		return err
	}
	for name, source := range t.chat.templates {
		if name == DefaultTemplate {
			g["tokenizer.chat_template"] = source
		} else {
			g["tokenizer.chat_template."+name] = source
		}
	}
	back, err := fromGGUF(g)
	if err != nil {
		return err
	}
	if want, got := t.Encode(probe, true), back.Encode(probe, true); !slices.Equal(want, got) {
		return errors.New("a text gets other ids under the rules of llama.cpp: " +
			"convert the model with llama.cpp's convert_hf_to_gguf.py")
	}
	return nil
}

// setTokens sets the vocabulary, given that without added tokens. Embeddings without a token get one that no text
// becomes.
func (g ggufMeta) setTokens(t *Tokenizer, embeddings int, ordinary func(id int32) (string, pieceKind)) error {
	if t.VocabSize() > embeddings {
		return fmt.Errorf("it has %d ids, the model %d embeddings", t.VocabSize(), embeddings)
	}
	tokens, kinds := make([]string, embeddings), make([]int32, embeddings)
	for i := range tokens {
		text, kind := ordinary(int32(i)) //nolint:gosec // ids are below 2^31
		if tokens[i], kinds[i] = text, int32(kind); text == "" {
			tokens[i] = fmt.Sprintf("[PAD%d]", i)
		}
	}
	for text, id := range t.added.byContent {
		if tokens[id], kinds[id] = text, int32(controlPiece); !t.IsSpecial(id) && !looksSpecial(text) {
			tokens[id], kinds[id] = strings.ReplaceAll(text, "▁", " "), int32(userPiece)
		}
	}
	g["tokenizer.ggml.tokens"], g["tokenizer.ggml.token_type"] = tokens, kinds
	return nil
}

// looksSpecial reports whether llama.cpp takes a token as special that its file does not mark.
func looksSpecial(text string) bool {
	within := func(before, after string) bool {
		return strings.HasPrefix(text, before) && strings.HasSuffix(text, after)
	}
	return slices.Contains([]string{"<pad>", "<mask>", "<2mass>", "[@BOS@]"}, text) || within("<|", "|>") ||
		within("<｜", "｜>") || within("<unused", ">")
}

// setEnds says which special tokens are added to a text.
func (g ggufMeta) setEnds(t *Tokenizer) error {
	with, without := t.Encode("a", true), t.Encode("a", false)
	addBOS := len(with) > len(without) && len(t.bos) > 0 && with[0] == t.bos[0]
	addEOS := len(with) > len(without) && len(t.eos) > 0 && with[len(with)-1] == t.eos[0]
	if addBOS {
		with = with[1:]
	}
	if addEOS {
		with = with[:len(with)-1]
	}
	if !slices.Equal(with, without) {
		return errors.New("it adds other tokens to a text than bos_token and eos_token")
	}
	g["tokenizer.ggml.add_bos_token"], g["tokenizer.ggml.add_eos_token"] = addBOS, addEOS
	return nil
}

// preferred are those of ggufPatterns that are written; others cut text as one of these.
var preferred = []string{
	"gpt-2", "smollm", "command-r", "qwen2", "qwen35", "stablelm2", "llama-bpe", "dbrx", "tekken", "gpt-4o", "deepseek-v3",
	"deepseek-coder",
}

// nameOf returns the value of tokenizer.ggml.pre for a tokenizer.json.
func (p ggufPattern) nameOf(file map[string]string) (string, error) {
	var model struct {
		IgnoreMerges bool `json:"ignore_merges"`
		ByteFallback bool `json:"byte_fallback"`
	}
	if err := json.Unmarshal(member(file, "model"), &model); err != nil {
		return "", err
	}
	err := components(member(file, "normalizer"), "normalizer", "normalizers", map[string]bool{"NFC": true},
		func(component, bool) error { p.nfc = true; return nil })
	known := map[string]bool{"Split": true, "Digits": true, "ByteLevel": true}
	if err == nil {
		err = components(member(file, "pre_tokenizer"), "pre_tokenizer", "pretokenizers", known, p.add)
	}
	if err != nil || model.ByteFallback {
		return "", fmt.Errorf("only byte-level BPE can be written: %w", cmp.Or(err, errors.New("the model is another")))
	}
	for _, name := range preferred {
		if q := ggufPatterns[name]; slices.Equal(p.patterns, q.patterns) && p.nfc == q.nfc && model.IgnoreMerges == q.whole {
			return name, nil
		}
	}
	return "", fmt.Errorf("llama.cpp has no pre-tokenizer that cuts text as %q, only %s", p.patterns,
		strings.Join(slices.Sorted(maps.Keys(ggufPatterns)), ", "))
}

// add adds the patterns of a component.
func (p *ggufPattern) add(part component, _ bool) error {
	var c struct {
		Pattern    struct{ Regex string }
		Behavior   string
		Invert     bool
		Individual bool `json:"individual_digits"`
		byteLevelFile
	}
	if err := json.Unmarshal(part.raw, &c); err != nil {
		return err
	}
	switch {
	case part.kind == "Split" && (c.Behavior == "Isolated" && !c.Invert || c.Behavior == "Removed" && c.Invert):
		p.patterns = append(p.patterns, c.Pattern.Regex)
	case part.kind == "Digits" && c.Individual:
		p.patterns = append(p.patterns, numberPattern)
	case part.kind == "ByteLevel" && !isOn(c.AddPrefix):
		if isOn(c.UseRegex) {
			p.patterns = append(p.patterns, gpt2Pattern)
		}
	default:
		return errors.New("llama.cpp has none with these options")
	}
	return nil
}
