// Package tiny embeds a small model, so that examples and tests need no download: a decoder of Qwen3's shape with a real
// tokenizer, trained from random weights on synthetic chats by internal/cmd/tinymodel.
//
// It knows the form of a chat, to answer with one digit, a number, yes or no, or a simple tool call. It has no skill: a
// move in a game is legal and otherwise random.
package tiny

import (
	_ "embed" // the files of the model

	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
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

// Load returns a copy of the model.
func Load() (*model.Weights, *tokenizer.Tokenizer, error) {
	w, err := model.Parse(configJSON, weights)
	if err != nil {
		return nil, nil, err
	}
	t, err := tokenizer.New(tokenizerJSON, tokenizerConfigJSON)
	return w, t, err
}
