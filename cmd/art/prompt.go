package main

import (
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// prompt is what a model shall continue, in one of several forms.
type prompt struct {
	chat          bool
	messages, ids string
	renderer      renderer // reads messages
}

// check reports arguments that name no prompt, or several.
func (p *prompt) check(args []string) error {
	forms := 0
	for _, given := range []bool{len(args) > 1, p.messages != "", p.ids != ""} {
		if given {
			forms++
		}
	}
	if forms != 1 || p.chat && len(args) < 2 {
		return badUsage("want MODEL and one of TEXT, --chat TEXT, --messages and --ids; art help generate says more")
	}
	return nil
}

// read returns the ids of the prompt, and those that end what follows.
func (p *prompt) read(tok *tokenizer.Tokenizer, args []string) (ids, end []int32, err error) {
	text := strings.Join(args, " ")
	switch {
	case p.ids != "":
		ids, err = parseIDs(p.ids)
		return ids, tok.EOS(), err
	case p.chat:
		return p.render(tok, conversation{Messages: []art.Message{art.User(text)}})
	case p.messages != "":
		var files []string
		if p.messages != "-" {
			files = []string{p.messages}
		}
		c, err := p.renderer.read(files)
		if err != nil {
			return nil, nil, err
		}
		return p.render(tok, c)
	}
	return tok.Encode(text, true), tok.EOS(), nil
}

// render writes messages in the model's template.
func (p *prompt) render(tok *tokenizer.Tokenizer, c conversation) (ids, end []int32, err error) {
	t, err := chat.New(tok, "")
	if err != nil {
		return nil, nil, err
	}
	if t, err = t.With(chat.Options{Args: c.Args, ToolFormat: p.renderer.toolFormat}); err != nil {
		return nil, nil, err
	}
	ids, err = t.Prompt(c.Messages, c.Tools)
	return ids, t.EndOfTurn(), err
}
