// Package basemodel opens what a model may be started from: the built-in one, a folder of Hugging Face's, or a GGUF
// file. It puts the weights and the tokenizer of one model together.
package basemodel

import (
	"errors"
	"fmt"
	"os"

	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
)

// Base is an open base model.
type Base struct {
	*model.Checkpoint
	Tokenizer *tokenizer.Tokenizer
	path      string
}

// Open opens [tiny.Name], a folder or a GGUF file. A tokenizer with more ids than the model has embeddings is an error.
func Open(path string) (*Base, error) {
	c, err := openWeights(path) // first: it says what cannot be used
	if err != nil {
		return nil, err
	}
	t, err := Tokenizer(path)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if n := t.VocabSize(); n > c.Config.VocabSize {
		err := fmt.Errorf("the tokenizer has %d ids, the model %d: they do not belong together", n, c.Config.VocabSize)
		return nil, errors.Join(err, c.Close())
	}
	return &Base{c, t, path}, nil
}

func openWeights(path string) (*model.Checkpoint, error) {
	if path == tiny.Name {
		return tiny.Open()
	}
	return model.Open(path)
}

// Tokenizer opens the tokenizer of a base model, with its chat template.
func Tokenizer(path string) (*tokenizer.Tokenizer, error) {
	if path == tiny.Name {
		return tokenizer.New(tiny.Tokenizer())
	}
	if !IsFile(path) {
		return tokenizer.Load(path)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.FromGGUF(f.Metadata())
	if err != nil {
		err = fmt.Errorf("%w (in %s)", err, path)
	}
	return t, errors.Join(err, f.Close())
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
