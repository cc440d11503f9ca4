// Package tokenizer turns text into token ids and back.
//
// A [Tokenizer] reads the files that Hugging Face models come with, tokenizer.json and tokenizer_config.json, and gives
// the same ids, offsets and texts as Hugging Face's own library, tokenizers 0.23.3 (below: the reference),
// independently of Go's Unicode version. It does byte-pair encoding over bytes and over characters, with or without
// byte fallback, and Unigram. The sections "truncation" and "padding" are ignored: texts for training are neither
// truncated nor padded. Loading a file with an unsupported component (WordPiece, WordLevel, BertNormalizer,
// UnicodeScripts, CTC) is an error that names it; unknown fields are ignored, as in the reference. Added tokens get the
// ids that the reference gives them.
//
// [FromSentencePiece], [FromGGUF] and [FromRanks] build tokenizers from other files; the encodings of OpenAI are in
// tokenizer/openai.
//
// Conversations and chat templates are in tokenizer/chat.
//
// A [Tokenizer] is safe for concurrent use; a [Stream] is not.
package tokenizer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

// Tokenizer converts between text and token ids. It does not change after it is loaded.
type Tokenizer struct {
	normalizers   []normalizer
	steps         []step    // of the pre-tokenizer
	fromByteLevel bool      // words are converted from the byte-level alphabet to bytes for the model
	tracksOrigins bool      // a step after a normalizer needs to know where the text begins
	model         wordModel // for ordinary text: it produces no special tokens
	exact         wordModel // as in the reference: it may produce special tokens; often the same
	added         *addedVocabulary
	processors    []processor
	decoder       decoder
	ids           map[string]int32 // token as the file writes it -> id
	texts         []string         // id -> token as the file writes it
	decoded       []string         // id -> what the decoder reads; texts but for added tokens that are normalized
	skipped       map[int32]bool   // ids that decoding without special tokens omits
	bytes         []string         // id -> the bytes that it stands for within a text
	known         []bool           // id -> whether the file defines it
	bos, eos      []int32
	chat          chatConfig
	pool          pool // scratch memory of exact
	ordinaryPool  pool // scratch memory of model
}

// Load reads tokenizer.json and tokenizer_config.json from a model's folder, and chat templates that are files of their
// own: chat_template.jinja, those in additional_chat_templates, and where there is no other, that of
// chat_template.json.
func Load(dir string) (*Tokenizer, error) {
	files := map[string][]byte{}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w; a model's folder needs tokenizer.json and tokenizer_config.json", err)
		}
		files[name] = data
	}
	t, err := New(files["tokenizer.json"], files["tokenizer_config.json"])
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, dir)
	}
	if err := t.chat.loadTemplates(dir); err != nil {
		return nil, err
	}
	return t, nil
}

// New builds a tokenizer from the contents of tokenizer.json and of tokenizer_config.json. Without the second (nil)
// the tokenizer knows no end-of-sequence token and no chat template.
func New(tokenizerJSON, configJSON []byte) (*Tokenizer, error) {
	t, err := build(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer.json: %w", err)
	}
	if configJSON == nil {
		return t, nil
	}
	if err := t.configure(configJSON); err != nil {
		return nil, fmt.Errorf("tokenizer: tokenizer_config.json: %w", err)
	}
	return t, nil
}

// VocabSize returns the number of ids: every id is below it. It counts ids that the file skips.
func (t *Tokenizer) VocabSize() int { return len(t.texts) }

// TokenID returns the id of a token as the file writes it: with "Ġ" or "▁" for a space.
func (t *Tokenizer) TokenID(token string) (id int32, ok bool) {
	id, ok = t.ids[token]
	return id, ok
}

// Token returns a token as the file writes it; "" for an id that the file does not define.
func (t *Tokenizer) Token(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.texts[id]
}

// IsSpecial reports whether id is a control token, one that [Tokenizer.Decode] can skip; see there for the exception.
func (t *Tokenizer) IsSpecial(id int32) bool { return t.added.special[id] }

// BOS returns the ids of the beginning-of-sequence token of tokenizer_config.json, none or one.
func (t *Tokenizer) BOS() []int32 { return append([]int32(nil), t.bos...) }

// EOS returns the ids of the end-of-sequence token of tokenizer_config.json, none or one.
func (t *Tokenizer) EOS() []int32 { return append([]int32(nil), t.eos...) }

// AddedTokens returns the ids of added tokens by their text: [Tokenizer.Encode] finds these in a text before everything
// else. They include the special tokens.
func (t *Tokenizer) AddedTokens() map[string]int32 { return maps.Clone(t.added.byContent) }

// Reachable reports whether [Tokenizer.EncodeOrdinary] may return id for some text.
func (t *Tokenizer) Reachable(id int32) bool { return t.model.produces(id) }

// valid reports whether the file defines id.
func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.known) && t.known[id] }
