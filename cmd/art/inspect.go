package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/trainer"
)

func init() {
	verbs["inspect"] = verb{
		summary: "what a model is, and the memory it takes",
		args:    "MODEL",
		text: `
Prints what a model is: architecture, number of parameters, types of the weights, chat template; and
how much memory it takes on the CPU device. Weights are not loaded.

` + models + `

Memory is that of the local backend: the weights in float32, and for each length the keys and values
of all slots and what is computed at once; for training also the copies of a LoRA adapter and what
the micro-batches of all workers compute, when every token is trained on. The graphs of both are
compiled to know. What a process takes besides, 134 MB, is in both sums.`,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print one JSON object")
			lengths := flags.String("lengths", "", "`tokens` of prompt and reply, several with commas; 512,2048 or the context")
			slots := flags.Int("slots", engine.DefaultSlots, "conversations that are computed at once")
			rank := flags.Int("rank", 0, "rank of the adapter; 0 is that of the run, or 8")
			workers := flags.Int("workers", runtime.GOMAXPROCS(0), "micro-batches that are trained on at once")
			return func(args []string, stdout, _ io.Writer) error {
				if len(args) != 1 {
					return badUsage("one model: art inspect [flags] MODEL")
				}
				list, err := parseLengths(*lengths)
				if err != nil {
					return err
				}
				if *slots < 1 || *rank < 0 || *workers < 1 {
					return badUsage("--slots %d --rank %d --workers %d: numbers above 0 are wanted, and 0 or more for the rank",
						*slots, *rank, *workers)
				}
				return examineModel(args[0], plan{list, *slots, *rank, *workers}, *asJSON, stdout)
			}
		},
	}
}

// parseLengths reads numbers. None are asked for by an empty text.
func parseLengths(text string) ([]int, error) {
	var list []int
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 2 {
			return nil, badUsage("--lengths %s: %q is not a length; want numbers of at least 2 with commas between them", text,
				part)
		}
		list = append(list, n)
	}
	return list, nil
}

// inspection is what inspect says of a model.
type inspection struct {
	Model        string         `json:"model"`
	Path         string         `json:"path,omitempty"`
	Run          string         `json:"run,omitempty"`     // folder of the run
	Adapter      *adapterReport `json:"adapter,omitempty"` // of a run
	Architecture string         `json:"architecture"`
	Parameters   int64          `json:"parameters"`
	Bytes        int64          `json:"bytes"` // of the weights as they are stored
	Types        []storedType   `json:"types"`
	Shape        *modelShape    `json:"shape,omitempty"`
	Template     templateReport `json:"template"`
	Memory       []lengthMemory `json:"memory,omitempty"`
	Problem      string         `json:"problem,omitempty"` // why it cannot be used
}

// adapterReport tells of the adapter that a run made.
type adapterReport struct {
	Folder string `json:"folder"`
	Base   string `json:"base"` // model that it is for
	Rank   int    `json:"rank"`
	Layers int    `json:"layers"`
}

// storedType sums up the tensors of a type.
type storedType struct {
	Type       string `json:"type"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

// modelShape is what a configuration says.
type modelShape struct {
	Layers  int  `json:"layers"`
	Hidden  int  `json:"hidden"`
	Heads   int  `json:"heads"`
	KVHeads int  `json:"kv_heads"`
	HeadDim int  `json:"head_dim"`
	MLP     int  `json:"mlp"`
	Vocab   int  `json:"vocabulary"`
	Context int  `json:"context"`
	Tied    bool `json:"tied_embeddings"`
	// Of mixtures of experts: how many a layer has, how many compute a token, and the size of each.
	Experts         int `json:"experts,omitempty"`
	ExpertsPerToken int `json:"experts_per_token,omitempty"`
	ExpertMLP       int `json:"expert_mlp,omitempty"`
}

// templateReport tells of the chat template.
type templateReport struct {
	Bytes   int    `json:"bytes"` // 0: there is none
	Problem string `json:"problem,omitempty"`
	// Of a template that can be used: what reads tool calls, and whether it writes tools and calls.
	Parser      string   `json:"parser,omitempty"`
	WritesTools bool     `json:"writes_tools"`
	WritesCalls bool     `json:"writes_calls"`
	Warnings    []string `json:"warnings,omitempty"`
}

// lengthMemory is the memory at a length, in bytes.
type lengthMemory struct {
	Length    int            `json:"length"`
	Slots     int            `json:"slots"`
	Process   int64          `json:"process"` // all but tensors
	Inference engine.Memory  `json:"inference"`
	Training  trainer.Memory `json:"training"`
	Infer     int64          `json:"inference_total"`
	Train     int64          `json:"training_total"` // inference between the steps included
}

// examineModel prints what a model is. What is known is printed even where it cannot be used, which is an error then.
func examineModel(name string, p plan, asJSON bool, stdout io.Writer) error {
	r, config, err := examine(name)
	if err != nil {
		return err
	}
	var problem error
	if config != nil {
		p.rank = cmp.Or(p.rank, r.rank(), 8)
		r.Memory, problem = p.memory(config)
	} else {
		problem = errors.New(r.Problem)
	}
	if asJSON {
		err = writeJSON(stdout, r)
	} else {
		err = write(stdout, r.table())
	}
	return errors.Join(err, problem)
}

// rank is that of the adapter, 0 without one.
func (r inspection) rank() int {
	if r.Adapter == nil {
		return 0
	}
	return r.Adapter.Rank
}

// table is the inspection for people.
func (r inspection) table() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-*s%s\n", label, name, fmt.Sprintf(format, args...))
	}
	line("model", "%s", r.Model)
	if r.Path != "" {
		line("path", "%s", r.Path)
	}
	if r.Run != "" {
		line("run", "%s", r.Run)
	}
	if a := r.Adapter; a != nil {
		line("adapter", "%s, rank %d, %d matrices of %s", a.Folder, a.Rank, a.Layers, a.Base)
	}
	line("architecture", "%s", r.Architecture)
	if s := r.Shape; s != nil {
		line("shape", "%d layers, hidden %d, %d heads of %d, %d of keys and values, MLP %d", s.Layers, s.Hidden, s.Heads,
			s.HeadDim, s.KVHeads, s.MLP)
		if s.Experts > 0 {
			line("experts", "%d, of which a token has %d, MLP %d; adapters attach to attention", s.Experts, s.ExpertsPerToken,
				s.ExpertMLP)
		}
		tied := ""
		if s.Tied {
			tied = ", shared with the output"
		}
		line("vocabulary", "%d%s", s.Vocab, tied)
		line("context", "%d tokens", s.Context)
	}
	line("parameters", "%d", r.Parameters)
	for _, t := range r.Types {
		line("weights", "%-5s %4d tensors %14d parameters %11s", t.Type, t.Tensors, t.Parameters, sizeText(t.Bytes))
	}
	line("template", "%s", r.Template.text())
	for _, text := range r.Template.notes() {
		line("", "%s", text)
	}
	if len(r.Memory) > 0 {
		fmt.Fprintf(&b, "\n%10s%10s%10s%12s%12s%12s%12s%12s\n", "length", "process", "weights", "cache", "inference",
			"adapter", "work", "training")
	}
	for _, m := range r.Memory {
		fmt.Fprintf(&b, "%10d%10s%10s%12s%12s%12s%12s%12s\n", m.Length, sizeText(m.Process), sizeText(m.Inference.Weights),
			sizeText(m.Inference.Cache), sizeText(m.Infer),
			sizeText(m.Training.Adapter), sizeText(m.Training.Work), sizeText(m.Train))
	}
	return b.String()
}

func (t templateReport) text() string {
	switch {
	case t.Bytes == 0 && t.Problem == "":
		return "none"
	case t.Problem != "":
		return "cannot be used: " + t.Problem
	}
	return fmt.Sprintf("%d bytes; tool calls are read by the parser %s", t.Bytes, t.Parser)
}

// notes says what the template leaves out, and what of replies is not understood.
func (t templateReport) notes() []string {
	if t.Parser == "" {
		return nil
	}
	var out []string
	if !t.WritesTools || !t.WritesCalls {
		out = append(out,
			fmt.Sprintf("it writes tools: %t, calls of tools: %t; what it leaves out is an error without ToolFormat",
				t.WritesTools, t.WritesCalls))
	}
	for _, warning := range t.Warnings {
		out = append(out, "warning: "+warning)
	}
	return out
}
