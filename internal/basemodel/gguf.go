package basemodel

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
)

// WriteGGUF writes the model as a GGUF file, with its tokenizer: see [model.Checkpoint.WriteGGUF].
func (b *Base) WriteGGUF(w io.Writer, o *model.GGUFOptions) error {
	if b.path != tiny.Name && IsFile(b.path) {
		return b.Checkpoint.WriteGGUF(w, o)
	}
	meta, err := b.tokenizerMetadata()
	if err != nil {
		return err
	}
	with := model.GGUFOptions{}
	if o != nil {
		with = *o
	}
	with.Tokenizer = meta
	return b.Checkpoint.WriteGGUF(w, &with)
}

// tokenizerMetadata returns what a GGUF file says about the tokenizer of the built-in model or of a folder.
func (b *Base) tokenizerMetadata() (map[string]any, error) {
	if b.path == tiny.Name {
		vocabulary, config := tiny.Tokenizer()
		return tokenizer.ToGGUF(vocabulary, config, nil, b.Config.VocabSize)
	}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(b.path, name)) }
	vocabulary, err := read("tokenizer.json") // Open has read it
	if err != nil {
		return nil, err
	}
	config, err := read("tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	pieces, err := read("tokenizer.model")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	meta, err := tokenizer.ToGGUF(vocabulary, config, pieces, b.Config.VocabSize)
	if err != nil {
		return nil, err
	}
	for name, source := range b.Tokenizer.ChatTemplates() { // those of files of their own too
		if name == tokenizer.DefaultTemplate {
			meta["tokenizer.chat_template"] = source
		} else {
			meta["tokenizer.chat_template."+name] = source
		}
	}
	// What tokenizer_config.json does not name, config.json may. Its ids may be lists, of which GGUF files have none.
	content, err := read(model.ConfigFile)
	if err != nil {
		return nil, err
	}
	var ids map[string]json.RawMessage
	if err := json.Unmarshal(content, &ids); err != nil {
		return nil, err
	}
	for from, name := range map[string]string{"bos": "bos", "eos": "eos", "pad": "padding"} {
		var id *uint32
		key := "tokenizer.ggml." + name + "_token_id"
		if _, ok := meta[key]; !ok && json.Unmarshal(ids[from+"_token_id"], &id) == nil && id != nil {
			meta[key] = *id
		}
	}
	return meta, nil
}
