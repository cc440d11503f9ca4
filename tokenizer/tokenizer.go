// Package tokenizer turns text into token ids and back.
//
// A [Tokenizer] reads the files that Hugging Face models come with, tokenizer.json and tokenizer_config.json, and gives
// the same ids, offsets and texts as Hugging Face's own library (tokenizers 0.23.3), whatever Go's Unicode version is. It
// does byte-pair encoding over bytes and over characters, with or without byte fallback, and Unigram. The sections
// "truncation" and "padding" have no effect: a text for training is neither cut nor filled up. Components that it does
// not know (WordPiece, WordLevel, BertNormalizer, UnicodeScripts, CTC) are refused when a file is loaded, by name; fields
// that the reference does not know have no effect there nor here. Added tokens get the ids that the reference gives
// them. [FromSentencePiece], [FromGGUF] and [FromRanks] build the same from other files; the encodings of OpenAI are in
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
	normalizers  []normalizer
	steps        []step    // of the pre-tokenizer
	unspell      bool      // words get to the model as the bytes that they spell
	tracks       bool      // a step asks where text begins, behind a normalizer: pieces have to remember
	model        wordModel // of ordinary text: it makes no special tokens
	exact        wordModel // the reference's: it makes any token; often the same
	added        *addedVocabulary
	processors   []processor
	decoder      decoder
	ids          map[string]int32 // text in the spelling of the file -> id
	texts        []string         // id -> text in the spelling of the file
	bytes        []string         // id -> what it is within a text
	known        []bool           // id -> whether the file defines it
	bos, eos     []int32
	chat         chatConfig
	pool         pool // of what exact uses
	ordinaryPool pool // of what model uses
}

// Load reads tokenizer.json and tokenizer_config.json from a model's folder, and its chat templates where they stand in
// files of their own: chat_template.jinja, and those of additional_chat_templates.
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

// VocabSize returns the number of ids: every id is below it. Ids that the file leaves out are counted.
func (t *Tokenizer) VocabSize() int { return len(t.texts) }

// TokenID returns the id of a token in the spelling of the file, in which a space is written "Ġ" or "▁".
func (t *Tokenizer) TokenID(token string) (id int32, ok bool) {
	id, ok = t.ids[token]
	return id, ok
}

// Token returns a token in the spelling of the file; "" for an id that the file does not define.
func (t *Tokenizer) Token(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.texts[id]
}

// IsSpecial reports whether id is a control token, one that [Tokenizer.Decode] can skip.
func (t *Tokenizer) IsSpecial(id int32) bool { return t.added.special[id] }

// BOS returns the ids of the beginning-of-sequence token of tokenizer_config.json, none or one.
func (t *Tokenizer) BOS() []int32 { return append([]int32(nil), t.bos...) }

// EOS returns the ids of the end-of-sequence token of tokenizer_config.json, none or one.
func (t *Tokenizer) EOS() []int32 { return append([]int32(nil), t.eos...) }

// AddedTokens returns the ids of the tokens that [Tokenizer.Encode] finds in a text before anything else happens to it, by
// their text. Special tokens are among them.
func (t *Tokenizer) AddedTokens() map[string]int32 { return maps.Clone(t.added.byContent) }

// Reachable reports whether [Tokenizer.EncodeOrdinary] returns id for some text.
func (t *Tokenizer) Reachable(id int32) bool { return t.model.produces(id) }

// valid reports whether the file defines id.
func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.known) && t.known[id] }
