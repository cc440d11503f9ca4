package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
)

func init() {
	verbs["debug score"] = verb{
		summary: "logprobs of the tokens of a text",
		args:    "MODEL [TEXT...]",
		runs:    true,
		text: `
Prints the logprob of each token of a text given those before it: the natural logarithm of its
probability at temperature 1. The first token has none. It computes in float32.

` + models + `

The text is the arguments, joined by spaces; without any, the file of --file; without that, the
input. Special tokens in it are recognised, and those that the model puts around a text are added;
with --ids nothing is added.`,
		define: func(flags *flag.FlagSet) action {
			var s scorer
			flags.BoolVar(&s.asJSON, "json", false, "print one JSON object: ids, texts, logprobs, sum")
			flags.StringVar(&s.ids, "ids", "", "score these `ids`, separated by commas, instead of a text")
			flags.StringVar(&s.file, "file", "", "read the text from a `file`; - is standard input")
			flags.StringVar(&s.adapter, "adapter", "", "`folder` of a LoRA adapter, this library's or PEFT's, or of a run")
			return s.run
		},
	}
}

// scorer is the verb debug score with its flags.
type scorer struct {
	asJSON             bool
	ids, adapter, file string
}

// scored is what debug score prints. The first token has no logprob.
type scored struct {
	Model    string     `json:"model"`
	Adapter  string     `json:"adapter,omitempty"`
	IDs      []int32    `json:"ids"`
	Texts    []string   `json:"texts"`
	Logprobs []*float32 `json:"logprobs"`
	Sum      float64    `json:"sum"`
}

func (s *scorer) run(args []string, stdout, _ io.Writer) error {
	if len(args) == 0 || s.ids != "" && (len(args) > 1 || s.file != "") || s.file != "" && len(args) > 1 {
		return badUsage("want MODEL and one of a text, --file and --ids; art help debug score says more")
	}
	ids, err := parseIDs(s.ids)
	if err != nil {
		return err
	}
	text := ""
	if s.ids == "" {
		if text, err = readText(args[1:], s.file); err != nil {
			return err
		}
	}
	m, err := load(args[0], s.adapter)
	if err != nil {
		return err
	}
	defer m.device.Finalize()
	if s.ids == "" {
		ids = m.tokenizer.Encode(text, true)
	}
	out := scored{Model: args[0], Adapter: m.source.adapter, IDs: ids, Texts: m.texts(ids)}
	config, _ := m.config.WithContext(len(ids))
	logprobs, err := engine.Score(m.device, config, m.params, m.adapter, ids)
	if err != nil {
		return err
	}
	out.Logprobs = make([]*float32, len(out.IDs))
	for i := range logprobs {
		out.Logprobs[i+1] = &logprobs[i]
		out.Sum += float64(logprobs[i])
	}
	if s.asJSON {
		return writeJSON(stdout, out)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, id := range out.IDs {
		number := ""
		if lp := out.Logprobs[i]; lp != nil {
			number = fmt.Sprintf("%.6f", *lp)
		}
		fmt.Fprintf(table, "%d\t%s\t  %q\n", id, number, out.Texts[i])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	n := len(out.IDs) - 1
	if n < 1 {
		return write(stdout, "one token: there is nothing to score\n")
	}
	mean := out.Sum / float64(n)
	return write(stdout, fmt.Sprintf("%s scored, sum %.6f, mean %.6f, perplexity %.4f\n", quantity.Of(n, "token"), out.Sum,
		mean, math.Exp(-mean)))
}

// loaded is a model on a device, with an adapter or without.
type loaded struct {
	source    source
	device    compute.Backend
	config    *model.Config
	tokenizer *tokenizer.Tokenizer
	params    *model.Params
	adapter   *engine.Adapter
}

// load uploads the model that MODEL names to a device, and the adapter of a folder or a run, if one is named.
func load(name, adapter string) (m *loaded, err error) {
	s, err := find(name)
	if err == nil {
		s, err = s.with(adapter)
	}
	if err != nil {
		return nil, err
	}
	base, err := s.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	device, err := cpu.New(nil)
	if err != nil {
		return nil, err
	}
	m = &loaded{source: s, device: device, config: base.Config, tokenizer: base.Tokenizer}
	var a *lora.Adapter
	if s.adapter != "" { // it is read before weights are copied to the device: that may fail
		a, err = loadAdapter(s.adapter, m.config)
	}
	if err == nil {
		m.params, err = base.ParamsAs(device, model.Stored) // the bits are those of float32
	}
	if err == nil && a != nil {
		m.adapter, err = engine.NewAdapter(device, m.config, m.params, a)
	}
	if err != nil {
		device.Finalize()
		return nil, err
	}
	return m, nil
}

// loadAdapter reads an adapter, which must fit the model.
func loadAdapter(dir string, c *model.Config) (*lora.Adapter, error) {
	a, err := lora.Load(dir)
	if err != nil {
		return nil, err
	}
	return a, a.Check(layersOf(c))
}

// layersOf are the layers of a model that an adapter can have.
func layersOf(c *model.Config) (list []lora.LayerShape) {
	for _, l := range c.Adaptable() {
		list = append(list, lora.LayerShape(l))
	}
	return list
}

// texts returns each id as text. A token that is only a part of a character becomes U+FFFD.
func (m *loaded) texts(ids []int32) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = m.tokenizer.Decode([]int32{id}, false)
	}
	return out
}
