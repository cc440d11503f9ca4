package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/openai"
)

// vocabularies explains MODEL in the help of verbs that need a tokenizer only.
const vocabularies = `MODEL is a model's folder, a tokenizer.json, a GGUF file, a SentencePiece model (*.model), "tiny"
for the built-in model, ORG/NAME[@revision] that art model pull fetched, the folder of a run, or the
name of an encoding of OpenAI: cl100k_base, o200k_base or o200k_harmony.`

// openTokenizer reads the tokenizer that a name refers to, with its chat templates.
func openTokenizer(name string) (*tokenizer.Tokenizer, error) {
	if name == tiny.Name {
		return basemodel.Tokenizer(name)
	}
	if isRun(name) || exists(filepath.Join(name, adapterConfig)) {
		s, err := find(name)
		if err != nil {
			return nil, err
		}
		return basemodel.Tokenizer(s.path)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return namedTokenizer(name, err)
	case info.IsDir():
		return folderTokenizer(name)
	case filepath.Base(name) == "tokenizer.json":
		return folderTokenizer(filepath.Dir(name))
	}
	return fileTokenizer(name)
}

// namedTokenizer reads an encoding of OpenAI, or a model in the cache of the hub. missing says that there is no file.
func namedTokenizer(name string, missing error) (*tokenizer.Tokenizer, error) {
	if tok, err := openai.Encoding(name); err == nil {
		return tok, nil
	}
	if _, err := hub.ParseName(name); err != nil {
		return nil,
			fmt.Errorf("%w: check the path, or name a model's folder, a tokenizer.json, a GGUF or *.model file, ORG/NAME, "+
				"or an encoding", missing)
	}
	s, err := hub.Cached(name, nil)
	if err != nil {
		return nil, err
	}
	return folderTokenizer(s.Dir)
}

// folderTokenizer reads tokenizer.json, and the chat template if the folder has one.
func folderTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	if _, err := os.Stat(filepath.Join(dir, "tokenizer_config.json")); !errors.Is(err, fs.ErrNotExist) {
		return tokenizer.Load(dir)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the folder of a model: it has neither tokenizer.json nor tokenizer_config.json",
			dir)
	}
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.New(data, nil)
	return tok, in(dir, err)
}

// fileTokenizer reads a file, whose format its first bytes or its name determine.
func fileTokenizer(path string) (*tokenizer.Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if n, err := f.Read(magic); err == nil && bytes.Equal(magic[:n], []byte("GGUF")) {
		return basemodel.Tokenizer(path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tok *tokenizer.Tokenizer
	if strings.HasSuffix(path, ".model") {
		tok, err = tokenizer.FromSentencePiece(data)
	} else {
		tok, err = tokenizer.New(data, nil)
	}
	return tok, in(path, err)
}
