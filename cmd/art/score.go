package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/quantity"
)

func init() { verbs["debug score"] = score(os.Stdin) }

// score returns the verb that computes the logprobs of a text.
func score(stdin io.Reader) verb {
	return verb{
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
			s := scorer{stdin: stdin}
			flags.BoolVar(&s.asJSON, "json", false, "print one JSON object: ids, texts, logprobs, sum")
			flags.StringVar(&s.ids, "ids", "", "score these `ids`, separated by commas, instead of a text")
			flags.StringVar(&s.text.file, "file", "", "read the text from a `file`; - is standard input")
			flags.StringVar(&s.adapter, "adapter", "", "`folder` of a LoRA adapter, this library's or PEFT's, or of a run")
			return s.run
		},
	}
}

// scorer is the verb debug score with its flags.
type scorer struct {
	stdin        io.Reader
	asJSON       bool
	ids, adapter string
	text         tokenizeOptions
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
	if len(args) == 0 || s.ids != "" && (len(args) > 1 || s.text.file != "") || s.text.file != "" && len(args) > 1 {
		return badUsage("want MODEL and one of a text, --file and --ids; art help debug score says more")
	}
	ids, err := parseIDs(s.ids)
	if err != nil {
		return err
	}
	text := ""
	if s.ids == "" {
		if text, err = s.text.text(args[1:], s.stdin); err != nil {
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
	logprobs, err := engine.Score(m.device, m.config, m.params, m.adapter, ids)
	if err != nil {
		return err
	}
	out.add(logprobs)
	if s.asJSON {
		return writeJSON(stdout, out)
	}
	return out.write(stdout)
}

// add adds the logprobs of all ids but the first.
func (s *scored) add(logprobs []float32) {
	s.Logprobs = make([]*float32, len(s.IDs))
	for i := range logprobs {
		s.Logprobs[i+1] = &logprobs[i]
		s.Sum += float64(logprobs[i])
	}
}

// write writes a table.
func (s *scored) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, id := range s.IDs {
		number := ""
		if lp := s.Logprobs[i]; lp != nil {
			number = fmt.Sprintf("%.6f", *lp)
		}
		fmt.Fprintf(table, "%d\t%s\t  %q\n", id, number, s.Texts[i])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	n := len(s.IDs) - 1
	if n < 1 {
		return write(w, "one token: there is nothing to score\n")
	}
	mean := s.Sum / float64(n)
	return write(w,
		fmt.Sprintf("%s scored, sum %.6f, mean %.6f, perplexity %.4f\n", quantity.Of(n, "token"), s.Sum, mean,
			math.Exp(-mean)))
}
