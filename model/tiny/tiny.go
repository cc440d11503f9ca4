// Package tiny embeds a small model, so that examples and tests need no download: a decoder of Qwen3's shape with a
// real tokenizer, trained from random weights on synthetic chats by internal/dev/cmd/tinymodel.
//
// It knows the form of a chat, to answer with one digit, a number, yes or no, and to call tools that it has not seen:
// docs/built-in-model.md. It has no skill: a move in a game is legal and otherwise random. Its context is 2,048 tokens.
package tiny

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the files of the model
	"fmt"
	"sync"

	"github.com/goart-dev/art/model"
)

// Name is what the model is called as a base model.
const Name = "tiny"

//go:embed config.json
var configJSON []byte

//go:embed model.safetensors
var weights []byte

//go:embed tokenizer.json
var tokenizerJSON []byte

//go:embed tokenizer_config.json
var tokenizerConfigJSON []byte

// Open opens the model.
func Open() (*model.Checkpoint, error) { return model.Parse(configJSON, weights) }

var digest = sync.OnceValue(func() string { return fmt.Sprintf("%x", sha256.Sum256(weights)) })

// Digest returns the SHA-256 of the weights, in hexadecimal. Runs recognise their base model by it, since a version of
// the module may bring another one.
func Digest() string { return digest() }

// Load returns a copy of the weights.
func Load() (*model.Weights, error) {
	c, err := Open()
	if err != nil {
		return nil, err
	}
	return c.Weights(), c.Close()
}

// Tokenizer returns the contents of tokenizer.json and tokenizer_config.json.
func Tokenizer() (vocabulary, config []byte) {
	return bytes.Clone(tokenizerJSON), bytes.Clone(tokenizerConfigJSON)
}
