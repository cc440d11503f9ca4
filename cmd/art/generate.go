package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

func init() {
	verbs["debug generate"] = verb{
		summary: "sample text from a model",
		args:    "MODEL [TEXT...]",
		runs:    true,
		text: `
Samples a continuation of a prompt and prints it. It computes in float32. By default decoding is
greedy: the most likely token is chosen each time.

` + models + `

The prompt is one of
  TEXT         which is continued; special tokens in it are recognised
  --chat TEXT  one user message, rendered with the model's chat template
  --messages   a JSON list of messages as in OpenAI's chat completions, or an object with the keys
               messages, tools and, for the template, chat_template_kwargs; rendered the same way
  --ids        token ids
A reply to a chat ends with the end-of-turn token, a text with the end-of-sequence token.`,
		define: func(flags *flag.FlagSet) action {
			var g generator
			flags.BoolVar(&g.asJSON, "json", false,
				"print one JSON object: prompt_ids, ids, texts, logprobs, text, finish, sampling")
			flags.BoolVar(&g.prompt.chat, "chat", false, "TEXT is a user message")
			flags.StringVar(&g.prompt.messages, "messages", "", "`file` of messages; - is standard input")
			flags.StringVar(&g.prompt.toolFormat, "tool-format", "", toolFormatUsage)
			flags.StringVar(&g.prompt.ids, "ids", "", "`ids` of the prompt, separated by commas")
			flags.StringVar(&g.adapter, "adapter", "", "`folder` of a LoRA adapter, this library's or PEFT's, or of a run")
			flags.IntVar(&g.sampling.MaxTokens, "max-tokens", 128, "write at most `n` tokens; 0 is the rest of the context")
			flags.Float64Var(&g.sampling.Temperature, "temperature", 0, "divide logits by `t`; 0 is greedy")
			flags.Float64Var(&g.sampling.TopP, "top-p", 1, "nucleus sampling with this cumulative `probability`; 1 is off")
			flags.IntVar(&g.sampling.TopK, "top-k", 0, "sample from the `k` most likely tokens; 0 is all")
			flags.Uint64Var(&g.sampling.Seed, "seed", 0, "of the sampler")
			flags.Func("stop", "stop at this `text`; may be repeated", func(s string) error {
				g.sampling.Stop = append(g.sampling.Stop, s)
				return nil
			})
			return g.run
		},
	}
}

// generator is the verb debug generate with its flags.
type generator struct {
	asJSON   bool
	prompt   prompt
	adapter  string
	sampling art.Sampling
}

// generated is what debug generate prints.
type generated struct {
	Model     string       `json:"model"`
	Adapter   string       `json:"adapter,omitempty"`
	PromptIDs []int32      `json:"prompt_ids"`
	IDs       []int32      `json:"ids"`
	Texts     []string     `json:"texts"`
	Logprobs  []float32    `json:"logprobs"` // at temperature 1
	Text      string       `json:"text"`
	Finish    string       `json:"finish"`
	Sampling  art.Sampling `json:"sampling"`
}

func (g *generator) run(args []string, stdout, _ io.Writer) error {
	p := &g.prompt
	forms := 0
	for _, given := range []bool{len(args) > 1, p.messages != "", p.ids != ""} {
		if given {
			forms++
		}
	}
	if forms != 1 || p.chat && len(args) < 2 {
		return badUsage("want MODEL and one of TEXT, --chat TEXT, --messages and --ids; art help debug generate says more")
	}
	if err := g.sampling.Validate(); err != nil {
		return badUsage("%v", errors.Unwrap(err)) // without the hint, which is for programs
	}
	m, err := load(args[0], g.adapter)
	if err != nil {
		return err
	}
	defer m.device.Finalize()
	for _, stop := range g.sampling.Stop {
		for _, id := range m.tokenizer.Encode(stop, false) {
			if m.tokenizer.IsSpecial(id) {
				return badUsage("--stop %q: %s is a special token, which the text of a reply does not have: give ordinary "+
					"text; a reply ends at the end token by itself", stop, m.tokenizer.Decode([]int32{id}, false))
			}
		}
	}
	ids, end, err := p.read(m.tokenizer, args[1:])
	if err != nil {
		return err
	}
	result, err := m.complete(ids, end, g.sampling)
	if err != nil {
		return err
	}
	out := generated{
		Model: args[0], Adapter: m.source.adapter, PromptIDs: ids, IDs: result.IDs, Texts: m.texts(result.IDs),
		Logprobs: result.Logprobs, Text: m.tokenizer.Decode(result.IDs, true),
		Finish: finishes[result.Reason], Sampling: g.sampling,
	}
	settings := "greedy (--temperature 0)"
	if s := g.sampling; s.Temperature != 0 {
		settings = fmt.Sprintf("temperature %v, top-p %v, top-k %d, seed %d", s.Temperature, s.TopP, s.TopK, s.Seed)
	}
	return writeResult(stdout, g.asJSON, out, fmt.Sprintf("%s\n\n%s after %d of the prompt, finish: %s, %s\n",
		out.Text, quantity.Of(len(result.IDs), "token"), len(ids), out.Finish, settings))
}

// finishes say why a reply ended.
var finishes = map[engine.Reason]string{engine.End: "end", engine.Stopped: "stop", engine.Length: "length"}

// complete continues a prompt. The KV cache is as long as that prompt and reply need.
func (m *loaded) complete(prompt, end []int32, s art.Sampling) (*engine.Result, error) {
	length := m.config.MaxPositions
	if s.MaxTokens > 0 {
		length = min(length, max(2, len(prompt)+s.MaxTokens))
	}
	config, _ := m.config.WithContext(length)
	e, err := engine.New(engine.Options{Device: m.device, Config: config, Params: m.params, Slots: 1, Context: length})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := engine.Request{
		Prompt: prompt, End: end, MaxTokens: s.MaxTokens, Seed: s.Seed, Adapter: m.adapter,
		Sampling: sampling.Settings{Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK},
	}
	if len(s.Stop) > 0 {
		r.Stop = engine.StopText(m.tokenizer.Stream(true, s.Stop...).Add)
	}
	return e.Complete(context.Background(), r)
}

// prompt is the text that a model continues, in one of several forms.
type prompt struct {
	chat          bool
	messages, ids string
	toolFormat    string
}

// read returns the ids of the prompt, and the ids that end a reply.
func (p *prompt) read(tok *tokenizer.Tokenizer, args []string) (ids, end []int32, err error) {
	text := strings.Join(args, " ")
	switch {
	case p.ids != "":
		ids, err = parseIDs(p.ids)
		return ids, tok.EOS(), err
	case p.chat:
		return p.render(tok, conversation{Messages: []art.Message{art.User(text)}})
	case p.messages != "":
		c, err := readChat(p.messages)
		if err != nil {
			return nil, nil, err
		}
		return p.render(tok, c)
	}
	return tok.Encode(text, true), tok.EOS(), nil
}

// render renders messages with the model's template.
func (p *prompt) render(tok *tokenizer.Tokenizer, c conversation) (ids, end []int32, err error) {
	t, err := chat.New(tok, "")
	if err != nil {
		return nil, nil, err
	}
	if t, err = t.With(chat.Options{Args: c.Args, ToolFormat: p.toolFormat}); err != nil {
		return nil, nil, err
	}
	ids, err = t.Prompt(c.Messages, c.Tools)
	return ids, t.EndOfTurn(), err
}
