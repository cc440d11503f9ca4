// Package basemodel opens what a model may be started from: the built-in one, a folder of Hugging Face's, or a GGUF
// file. It puts the weights and the tokenizer of one model together.
package basemodel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
)

// Base is an open base model.
type Base struct {
	*model.Checkpoint
	Tokenizer *tokenizer.Tokenizer
	// Original is the name of the checkpoint that a GGUF file was made from, to which adapters belong as well; "" where
	// the file does not say it, and for other models.
	Original string

	path string
}

// Open opens [tiny.Name], a folder or a GGUF file. A tokenizer with more ids than the model has embeddings is an error.
func Open(path string) (*Base, error) {
	c, err := openWeights(path) // first: it says what cannot be used
	if err != nil {
		return nil, err
	}
	t, original, err := describe(path)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if n := t.VocabSize(); n > c.Config.VocabSize {
		err := fmt.Errorf("the tokenizer has %d ids, the model %d: they do not belong together", n, c.Config.VocabSize)
		return nil, errors.Join(err, c.Close())
	}
	return &Base{c, t, original, path}, nil
}

func openWeights(path string) (*model.Checkpoint, error) {
	if path == tiny.Name {
		return tiny.Open()
	}
	return model.Open(path)
}

// Tokenizer opens the tokenizer of a base model, with its chat template.
func Tokenizer(path string) (*tokenizer.Tokenizer, error) {
	t, _, err := describe(path)
	return t, err
}

// describe returns what of a model is not in its weights: the tokenizer, and the name of the checkpoint of a GGUF file.
func describe(path string) (t *tokenizer.Tokenizer, name string, err error) {
	if path == tiny.Name {
		t, err = tokenizer.New(tiny.Tokenizer())
		return t, "", err
	}
	if !IsFile(path) {
		t, err = tokenizer.Load(path)
		return t, "", err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, "", err
	}
	metadata := f.Metadata()
	t, err = tokenizer.FromGGUF(metadata)
	if err != nil {
		err = fmt.Errorf("%w (in %s)", err, path)
	}
	return t, original(metadata), errors.Join(err, f.Close())
}

// IsFile reports whether there is a file, not a folder, at path.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// IsFolder reports whether there is a folder at path.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Export writes the model with an adapter added to its weights, and its tokenizer, into a folder that transformers
// reads: a new one, or an empty one. a may be nil. opts may be nil; its Edit sees the sums.
func (b *Base) Export(dir string, a *lora.Adapter, opts *model.SaveOptions) error {
	o := model.SaveOptions{}
	if opts != nil {
		o = *opts
	}
	if a != nil {
		if err := errors.Join(b.check(a), b.checkTied(a, "merged")); err != nil {
			return err
		}
		o.Edit = func(name string, values []float32) error {
			if err := merge(a, name, values); err != nil || opts == nil || opts.Edit == nil {
				return err
			}
			return opts.Edit(name, values)
		}
	}
	if err := newFolder(dir); err != nil {
		return err
	}
	if err := ExportTokenizer(b.path, dir); err != nil {
		return err
	}
	return b.Save(dir, &o)
}

// newFolder makes a folder, which may be there if it is empty.
func newFolder(dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: name a new folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// check reports layers of an adapter that the model lacks.
func (b *Base) check(a *lora.Adapter) error {
	var layers []lora.LayerShape
	for _, l := range b.Config.Adaptable() {
		layers = append(layers, lora.LayerShape(l))
	}
	return a.Check(layers)
}

// checkTied reports an adapter of the embedding or the head of a model in which these are one matrix: the sums differ.
func (b *Base) checkTied(a *lora.Adapter, done string) error {
	for _, l := range b.Config.Adaptable() {
		if _, ok := a.Layer(l.Name); ok && b.Config.TieEmbeddings && (l.Embedding || l.Name == "lm_head") {
			return fmt.Errorf("the adapter has %s, which cannot be %s: embedding and head of the base are one matrix", l.Name,
				done)
		}
	}
	return nil
}

// merge adds the part of an adapter that belongs to a tensor.
func merge(a *lora.Adapter, name string, values []float32) error {
	layer, isWeight := strings.CutSuffix(name, ".weight")
	if _, ok := a.Layer(layer); !ok || !isWeight {
		return nil
	}
	return a.Merge(values, layer)
}

// tokenizerFiles are what a folder may have beside config.json and weights, for its tokenizer and the defaults of
// sampling.
var tokenizerFiles = []string{
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
	"tokenizer.model",
	"chat_template.jinja", "chat_template.json", "preprocessor_config.json", "processor_config.json",
	"additional_chat_templates/*.jinja", "generation_config.json",
}

// ExportTokenizer writes the tokenizer of a base model into a folder, as files that transformers reads.
func ExportTokenizer(path, dir string) error {
	if isTiny := path == tiny.Name; isTiny || IsFile(path) {
		vocabulary, config := tiny.Tokenizer()
		if !isTiny {
			f, err := gguf.Open(path)
			if err != nil {
				return err
			}
			vocabulary, config, err = tokenizer.ExportGGUF(f.Metadata())
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		return errors.Join(
			os.WriteFile(filepath.Join(dir, "tokenizer.json"), vocabulary, 0o644),
			os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), config, 0o644),
		)
	}
	for _, pattern := range tokenizerFiles {
		files, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			to := filepath.Join(dir, filepath.Dir(pattern), filepath.Base(file))
			content, err := os.ReadFile(file)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(to), 0o755)
			}
			if err == nil {
				err = os.WriteFile(to, content, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckConfig reports why a model with this config.json cannot be used, without its weights.
func CheckConfig(data []byte) error {
	_, err := model.ParseConfig(data)
	return err
}
