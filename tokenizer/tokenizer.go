// Package tokenizer turns text into token ids and back, and conversations into the exact ids that a model sees.
//
// A [Tokenizer] reads the files that Hugging Face models come with, tokenizer.json and tokenizer_config.json, and gives
// the same ids as Hugging Face's own library. It does byte-level BPE, the kind that GPT-2, Llama 3 and Qwen use.
// A file that asks for anything else is refused when it is loaded, with an error that names it.
//
// A [Template] renders messages. Two rules make it fit for training:
//
//   - Text from outside never becomes a control token. Content goes through [Tokenizer.EncodeOrdinary], which does not
//     know "<|im_end|>" from other text.
//   - What the model wrote is never encoded again. A message with an art.Sample contributes exactly the ids that were
//     sampled, so each prompt of a conversation begins with the prompt before it and the reply to it.
//
// Character classes in a file's regular expressions are those of Go's Unicode version, 15 today. Hugging Face's engine
// has had later ones, so text in characters that are newer than Go's may be cut into words otherwise.
//
// Everything here is safe for concurrent use, except a [Stream], which belongs to one reply.
package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
)

// Tokenizer converts between text and token ids. It does not change after it is loaded.
type Tokenizer struct {
	normalize normalizer
	pre       preTokenizer
	model     *bpe
	added     *addedVocabulary
	wrap      wrapping
	ids       map[string]int32 // spelling in the file -> id
	bytes     []string         // id -> what it decodes to; "" for an id that is not in use
	known     []bool           // id -> whether the file defines it
	bos, eos  []int32
	chat      chatConfig
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
func (t *Tokenizer) VocabSize() int { return len(t.bytes) }

// TokenID returns the id of a token in the spelling of the file, in which a space is written "Ġ".
func (t *Tokenizer) TokenID(token string) (id int32, ok bool) {
	id, ok = t.ids[token]
	return id, ok
}

// IsSpecial reports whether id is a control token, one that [Tokenizer.Decode] can skip.
func (t *Tokenizer) IsSpecial(id int32) bool { return t.added.special[id] }

// BOS returns the ids of the beginning-of-sequence token of tokenizer_config.json, none or one.
func (t *Tokenizer) BOS() []int32 { return append([]int32(nil), t.bos...) }

// EOS returns the ids of the end-of-sequence token of tokenizer_config.json, none or one.
func (t *Tokenizer) EOS() []int32 { return append([]int32(nil), t.eos...) }

// ChatTemplate returns the Jinja source that came with the model, or "". Of several it is the one called "default".
func (t *Tokenizer) ChatTemplate() string { return t.chat.templates[defaultTemplate] }

// valid reports whether the file defines id.
func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.known) && t.known[id] }
