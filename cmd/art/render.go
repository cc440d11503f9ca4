package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/tokenizer/chat"
)

func init() {
	verbs["debug render"] = verb{
		summary: "render messages as a model's prompt",
		args:    "MODEL [FILE]",
		runs:    true,
		text: `
Prints the text that a chat template renders from messages, and its token ids.

` + vocabularies + `

FILE has a JSON list of messages as in OpenAI's chat completions, or an object with the keys
messages, tools and, for the template, chat_template_kwargs. Without FILE it is read from standard
input.`,
		define: func(flags *flag.FlagSet) action {
			var r renderer
			flags.BoolVar(&r.asJSON, "json", false, "print one JSON object")
			flags.StringVar(&r.format, "format", "", "`name` of a format, instead of the model's own template")
			flags.StringVar(&r.args, "args", "", "further variables of the template, a JSON `object`")
			flags.StringVar(&r.toolFormat, "tool-format", "", toolFormatUsage)
			flags.BoolVar(&r.whole, "whole", false, "end after the last message, without the beginning of a reply")
			flags.BoolVar(&r.proceed, "continue", false, "end within the last message, to continue it")
			return r.run
		},
	}
}

// toolFormatUsage explains the flag --tool-format.
const toolFormatUsage = "`name` of the format of tools, for a template that does not render them"

// renderer is the verb debug render with its flags.
type renderer struct {
	asJSON, whole, proceed bool
	format, args           string
	toolFormat             string
}

// conversation is what render reads.
type conversation struct {
	Messages []art.Message   `json:"messages"`
	Tools    []art.Tool      `json:"tools"`
	Args     json.RawMessage `json:"chat_template_kwargs"`
}

// rendered is what debug render prints.
type rendered struct {
	Format    string  `json:"format"`
	Parser    string  `json:"parser"`
	Text      string  `json:"text"`
	IDs       []int32 `json:"ids"`
	EndOfTurn []int32 `json:"end_of_turn"`
	// Warnings say which replies cannot be parsed.
	Warnings []string `json:"warnings,omitempty"`
}

func (r *renderer) run(args []string, stdout, _ io.Writer) error {
	if len(args) < 1 || len(args) > 2 || r.whole && r.proceed {
		return badUsage("want MODEL and at most one FILE, and one of --whole and --continue; art help debug render says more")
	}
	tok, err := openTokenizer(args[0])
	if err != nil {
		return err
	}
	template, err := chat.New(tok, r.format)
	if err != nil {
		return err
	}
	file := "-"
	if len(args) == 2 {
		file = args[1]
	}
	c, err := readChat(file)
	if err != nil {
		return err
	}
	for _, o := range []json.RawMessage{c.Args, json.RawMessage(r.args)} {
		if template, err = template.With(chat.Options{Args: o}); err != nil {
			return err
		}
	}
	if template, err = template.With(chat.Options{ToolFormat: r.toolFormat}); err != nil {
		return err
	}
	ending := chat.GenerationPrompt
	switch {
	case r.whole:
		ending = chat.Whole
	case r.proceed:
		ending = chat.ContinueFinal
	}
	out := rendered{
		Format: template.Name(), Parser: template.Parser(), EndOfTurn: template.EndOfTurn(), Warnings: template.Warnings(),
	}
	if out.Text, err = template.Text(c.Messages, c.Tools, ending); err != nil {
		return err
	}
	if out.IDs, err = template.IDs(c.Messages, c.Tools, ending); err != nil {
		return err
	}
	text := fmt.Sprintf("%s\n\n%s: %v\n", out.Text, quantity.Of(len(out.IDs), "id"), out.IDs)
	return writeResult(stdout, r.asJSON, out, text)
}

// readChat reads messages, or an object with them, from a file or, for "-", from standard input.
func readChat(file string) (c conversation, err error) {
	data, err := readInput(file)
	if err != nil {
		return c, err
	}
	if err = json.Unmarshal(data, &c.Messages); err != nil {
		objectErr := json.Unmarshal(data, &c)
		if isList := json.Unmarshal(data, &[]json.RawMessage{}) == nil; objectErr == nil || !isList {
			err = objectErr
		}
	}
	if err == nil && len(c.Messages) == 0 {
		err = errors.New(`there are no messages: want a JSON list of them, or an object with the key "messages"`)
	}
	if err != nil {
		if file == "-" {
			file = "standard input"
		}
		err = fmt.Errorf("%s: %w", file, err)
	}
	return c, err
}
