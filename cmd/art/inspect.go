package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

func init() {
	verbs["model inspect"] = verb{
		summary: "describe a model, and the memory it needs",
		args:    "MODEL",
		runs:    true,
		text: `
Prints the architecture of a model, its number of parameters, the types of its weights, its chat
template, and how much memory it needs on the CPU device. Weights are not loaded: a folder may have
config.json alone.

` + models + `

Of a GGUF file it says what the tensors of each type take in the file, and on the CPU device with
matrices of each type that --weights may be; --tensors has a line for each tensor. Types that take
more as they are stored than in the file are marked.

Memory is that of the local backend: the weights in --weights, and for each length the KV cache, in
blocks of 32 tokens, and the intermediate results; for training also the copies of a LoRA adapter,
the compiled graphs that are kept, and the intermediate results of the micro-batches of all workers,
when every token is trained on.
The adapter is that of the run, or one of --rank on the layers of --targets or --target-pattern:
linear layers, embed_tokens and lm_head; --rank-of sets the rank of some. --dora makes it one of
DoRA. With --full the copies and the work are those of a training of all weights.
With --device it lists the programs that serving compiles on that device and the micro-batches that
a training has there, and bounds the memory of both; of a GPU of this machine it says how much there
is, and how much of it can be planned with.
The graphs of both are compiled for exact numbers. The last column is that of training with layers
that are computed again, which a training chooses where memory is short. Sums include 134 MB for
the rest of the process.`,
		define: func(flags *flag.FlagSet) action {
			var i inspector
			flags.BoolVar(&i.asJSON, "json", false, "print one JSON object")
			flags.StringVar(&i.lengths, "lengths", "",
				"`tokens` of prompt and reply, a comma-separated list; 512,2048 or the context")
			flags.IntVar(&i.plan.slots, "slots", plan.DefaultSlots, "replies sampled at once")
			flags.IntVar(&i.plan.tokens, "cache-tokens", 0, "tokens in the KV cache; 0 is the length, for each slot")
			i.adapter.define(flags, "that of the run, or 8")
			flags.BoolVar(&i.plan.full, "full", false, "training of all weights, in place of an adapter")
			flags.StringVar(&i.plan.on, "device", "",
				"`device` to list programs and memory of, such as xla:cuda; it is not opened")
			flags.StringVar(&i.weights, "weights", "",
				"`type` of matrices: stored (as a GGUF file has them, on the CPU), float32,\n"+
					"bfloat16, or int8 on a device of XLA; default: stored for a GGUF file on\nthe CPU, else float32")
			flags.BoolVar(&i.tensors, "tensors", false, "list the tensors of a GGUF file")
			flags.StringVar(&i.cacheType, "cache-type", "float32", "`type` of the KV cache on it: float32 or bfloat16")
			flags.IntVar(&i.plan.workers, "workers", runtime.GOMAXPROCS(0), "micro-batches trained on at once")
			return i.run
		},
	}
}

// inspector is the verb model inspect with its flags.
type inspector struct {
	asJSON, tensors             bool
	lengths, weights, cacheType string
	adapter                     loraFlags
	plan                        memoryPlan
}

// check reports flags that are wrong for any model.
func (i *inspector) check() error {
	p := i.plan
	kind, _, _ := strings.Cut(p.on, ":")
	_, known := matrixTypes[i.weights]
	switch {
	case p.slots < 1 || i.adapter.lora.Rank < 0 || p.workers < 1 || p.tokens < 0:
		return badUsage("--slots %d --rank %d --workers %d --cache-tokens %d: want slots and workers > 0, the others >= 0",
			p.slots, i.adapter.lora.Rank, p.workers, p.tokens)
	case p.full && !i.adapter.empty():
		return badUsage("--full trains all weights: leave --rank, --targets, --target-pattern, --rank-of and --dora out")
	case p.full && i.weights == "stored":
		return badUsage("--full --weights stored: quantized weights cannot be trained; take float32")
	case !known && i.weights != "":
		return badUsage("--weights %s: want float32, bfloat16, int8 or stored", i.weights)
	case i.cacheType != "float32" && i.cacheType != "bfloat16":
		return badUsage("--cache-type %s: want float32 or bfloat16", i.cacheType)
	case p.on == "" && i.cacheType != "float32":
		return badUsage("--cache-type %s: it is that of --device, which is not given", i.cacheType)
	case p.on != "" && kind != cpu.Name && kind != "xla":
		return badUsage("--device %s: want cpu, or a device of XLA such as xla:cpu or xla:cuda", p.on)
	case kind != "xla" && (i.weights == "int8" || i.cacheType == "bfloat16"):
		return badUsage("--weights %s --cache-type %s: matrices in int8 and a KV cache in bfloat16 need a device of XLA",
			cmp.Or(i.weights, "float32"), i.cacheType)
	case kind == "xla" && i.weights == "stored":
		return badUsage("--device %s --weights stored: matrices of a GGUF file are kept on the CPU device alone", p.on)
	}
	return nil
}

// run prints what a model is. A model that cannot be used is an error, after what is known of it.
func (i *inspector) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return badUsage("one model: art model inspect [flags] MODEL")
	}
	err := i.check()
	p := i.plan
	if i.lengths != "" && err == nil {
		p.lengths, err = countList("lengths", i.lengths, 2)
	}
	if err != nil {
		return err
	}
	l := i.adapter.chosen()
	p.adapter = lora.Config{Rank: l.Rank, Targets: l.Targets, Pattern: l.TargetPattern, Ranks: l.Ranks, DoRA: l.DoRA}
	p.cacheType = matrixTypes[i.cacheType]
	r, config, err := examine(args[0])
	if err != nil {
		return err
	}
	var problem error
	if config != nil {
		if p.weights, err = i.matrices(&r, config); err != nil {
			return err
		}
		p.matrices = matrixTypes[r.Weights]
		r.Memory, problem = p.memory(config, r.Adapter)
		if p.on != "" && problem == nil {
			r.GPU = gpuOf(p.on)
			r.Device, problem = p.device(config, r.Adapter)
		}
	} else {
		problem = errors.New(r.Problem)
	}
	text := r.table()
	if i.tensors {
		text += r.tensorTable()
	} else {
		r.Tensors = nil
	}
	return errors.Join(writeResult(stdout, i.asJSON, r, text), problem)
}

// matrices chooses the type of --weights for a model, and returns what the weights take on the CPU device in bytes.
func (i *inspector) matrices(r *inspection, c *model.Config) (bytes float64, err error) {
	r.Weights = cmp.Or(i.weights, "float32")
	onXLA := strings.HasPrefix(i.plan.on, "xla")
	switch {
	case r.Held == nil && (i.weights == "stored" || i.tensors):
		return 0, badUsage("%s is no GGUF file: leave --tensors and --weights stored out", r.Model)
	case onXLA:
		return plan.WeightBytes(c, dtypes.Float32), nil
	case r.Held == nil:
		return plan.WeightBytes(c, matrixTypes[r.Weights]), nil
	case i.weights == "" && !i.plan.full:
		r.Weights = "stored"
	}
	return r.Held.in(r.Weights), nil
}

// inspection is what model inspect prints.
type inspection struct {
	Model        string         `json:"model"`
	Path         string         `json:"path,omitempty"`
	Run          string         `json:"run,omitempty"`     // folder of the run
	Adapter      *adapterReport `json:"adapter,omitempty"` // of a run
	Architecture string         `json:"architecture"`
	Parameters   int64          `json:"parameters"`
	Bytes        int64          `json:"bytes"` // of the weights as they are stored
	Types        []storedType   `json:"types"`
	Skipped      *storedType    `json:"skipped,omitempty"`         // tensors of other parts than the text model
	Missing      bool           `json:"weights_missing,omitempty"` // the folder has none: sizes are those of config.json
	Shape        *modelShape    `json:"shape,omitempty"`
	Template     templateReport `json:"template"`
	// Of a GGUF file: what all tensors take on the CPU device, and each of them.
	Held    *heldBytes     `json:"held,omitempty"`
	Tensors []tensorReport `json:"tensors,omitempty"`
	Weights string         `json:"weights,omitempty"` // type of the matrices that Memory and Device are for
	Memory  []lengthMemory `json:"memory,omitempty"`
	GPU     *gpuReport     `json:"gpu,omitempty"`
	Device  []deviceReport `json:"device,omitempty"`
	Problem string         `json:"problem,omitempty"` // why it cannot be used
}

// adapterReport describes the adapter of a run.
type adapterReport struct {
	Folder string `json:"folder"`
	Base   string `json:"base"` // model that it is for
	Rank   int    `json:"rank"`
	Layers int    `json:"layers"`

	adapter *lora.Adapter
}

// storedType sums up the tensors of a type.
type storedType struct {
	Type       string `json:"type"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
	// Held is, of a GGUF file, what those that belong to the model take.
	Held *heldBytes `json:"held,omitempty"`
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
	// Of mixtures of experts: experts per layer, active experts per token, and the size of each.
	Experts         int `json:"experts,omitempty"`
	ExpertsPerToken int `json:"experts_per_token,omitempty"`
	ExpertMLP       int `json:"expert_mlp,omitempty"`
}

// templateReport describes the chat template.
type templateReport struct {
	Bytes   int    `json:"bytes"` // 0: there is none
	Problem string `json:"problem,omitempty"`
	// Of a usable template: the parser of tool calls, and whether it renders tools and calls.
	Parser      string   `json:"parser,omitempty"`
	WritesTools bool     `json:"writes_tools"`
	WritesCalls bool     `json:"writes_calls"`
	Warnings    []string `json:"warnings,omitempty"`
}

// lengthMemory is the memory at a length, in bytes.
type lengthMemory struct {
	Length    int         `json:"length"`
	Slots     int         `json:"slots"`
	Tokens    int         `json:"cache_tokens"`
	Process   float64     `json:"process"` // all but tensors
	Inference plan.Memory `json:"inference"`
	Training  plan.Memory `json:"training"`
	Infer     float64     `json:"inference_total"`
	Train     float64     `json:"training_total"` // inference between the steps included
	// Recomputed are training and its total with layers that are computed again.
	Recomputed plan.Memory `json:"recomputed"`
	Least      float64     `json:"recomputed_total"`
}

// table is the inspection in text.
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
		line("adapter", "%s, rank %d, %s of %s", a.Folder, a.Rank, quantity.Of(a.Layers, "layer"), a.Base)
	}
	line("architecture", "%s", r.Architecture)
	if s := r.Shape; s != nil {
		line("shape", "%s, hidden %d, %s of %d, %s, MLP %d", quantity.Of(s.Layers, "layer"), s.Hidden,
			quantity.Of(s.Heads, "head"), s.HeadDim, quantity.Of(s.KVHeads, "KV head"), s.MLP)
		if s.Experts > 0 {
			line("experts", "%d, %d active per token, MLP %d; adapters attach to attention", s.Experts, s.ExpertsPerToken,
				s.ExpertMLP)
		}
		tied := ""
		if s.Tied {
			tied = ", tied embeddings"
		}
		line("vocabulary", "%d%s", s.Vocab, tied)
		line("context", "%s", quantity.Of(s.Context, "token"))
	}
	line("parameters", "%d", r.Parameters)
	line("weights", "%s", strings.Join(r.weights(), "\n"+strings.Repeat(" ", label)))
	line("template", "%s", r.Template.text())
	for _, text := range r.Template.notes() {
		line("", "%s", text)
	}
	if len(r.Memory) > 0 {
		fmt.Fprintf(&b, "\n%10s%10s%10s%12s%12s%12s%12s%12s%12s%12s\n", "length", "process", "weights", "cache", "inference",
			"adapter", "work", "programs", "training", "recomputed")
	}
	for _, m := range r.Memory {
		size := func(bytes float64) string { return quantity.Bytes(int64(bytes)) }
		fmt.Fprintf(&b, "%10d%10s%10s%12s%12s%12s%12s%12s%12s%12s\n", m.Length, size(m.Process),
			size(m.Inference.Weights), size(m.Inference.Cache), size(m.Infer), size(m.Training.Adapter),
			size(m.Training.Work), size(m.Training.Programs), size(m.Train), size(m.Least))
	}
	if r.GPU != nil {
		fmt.Fprintf(&b, "\n%s\n", wrap(r.GPU.String(), width))
	}
	for _, d := range r.Device {
		b.WriteString("\n")
		for _, text := range d.lines() {
			b.WriteString(wrap(text, width) + "\n")
		}
	}
	return b.String()
}

// weights are the lines of the tensors.
func (r inspection) weights() (lines []string) {
	if r.Missing {
		return []string{"none in the folder"}
	}
	if r.Held != nil {
		return r.heldLines()
	}
	for _, t := range r.Types {
		lines = append(lines,
			fmt.Sprintf("%-5s %4d tensors %14d parameters %11s", t.Type, t.Tensors, t.Parameters, quantity.Bytes(t.Bytes)))
	}
	if o := r.Skipped; o != nil {
		lines = append(lines, fmt.Sprintf("besides: %s of other parts than the text model, %s, are left alone",
			quantity.Of(o.Tensors, "tensor"), quantity.Bytes(o.Bytes)))
	}
	return lines
}

func (t templateReport) text() string {
	switch {
	case t.Bytes == 0 && t.Problem == "":
		return "none"
	case t.Problem != "":
		return "cannot be used: " + t.Problem
	}
	return fmt.Sprintf("%d bytes; parser of tool calls: %s", t.Bytes, t.Parser)
}

// notes say what the template does not render, and which replies cannot be parsed.
func (t templateReport) notes() []string {
	if t.Parser == "" {
		return nil
	}
	var out []string
	if !t.WritesTools || !t.WritesCalls {
		out = append(out, fmt.Sprintf("renders tools: %t, tool calls: %t; set ToolFormat for what it does not render",
			t.WritesTools, t.WritesCalls))
	}
	for _, warning := range t.Warnings {
		out = append(out, "warning: "+warning)
	}
	return out
}
