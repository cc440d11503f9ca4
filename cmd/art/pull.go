package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/hub"
)

func init() {
	verbs["model pull"] = verb{
		summary: "fetch a model from the hub",
		args:    "ORG/NAME[@revision]",
		text: `
Fetches a model from the Hugging Face hub into the cache that Python's huggingface_hub uses, and
prints its folder: configuration, tokenizer, chat template, and weights as safetensors. The
configuration comes first: of a model that cannot be used here nothing else is fetched. Files in the
cache are not fetched again, an interrupted download is resumed, and every file is checked against
the hub's checksum. The revision is a branch, a tag or a commit; default main.

environment:
  HF_ENDPOINT        the hub; https://huggingface.co when empty
  HF_TOKEN           token for private and gated models; else that in the file HF_TOKEN_PATH, or in
                     HF_HOME/token
  HF_HUB_CACHE       the cache; HF_HOME/hub when empty
  HF_HOME            ~/.cache/huggingface when empty
  HF_HUB_OFFLINE     1: use the cache only`,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print one JSON object")
			return func(args []string, stdout, stderr io.Writer) error {
				if len(args) != 1 {
					return badUsage("want one model: art model pull [--json] ORG/NAME[@revision]")
				}
				return pull(args[0], *asJSON, stdout, stderr)
			}
		},
	}
}

// pulled is what model pull prints.
type pulled struct {
	Name     string       `json:"name"`
	Revision string       `json:"revision"`
	Commit   string       `json:"commit"`
	Folder   string       `json:"folder"`
	Bytes    int64        `json:"bytes"`
	Files    []pulledFile `json:"files"`
}

type pulledFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// pull fetches a model and prints where it is.
func pull(name string, asJSON bool, stdout, stderr io.Writer) error {
	if _, err := hub.ParseName(name); err != nil {
		return badUsage("%v", err)
	}
	terminal := newProgress(stderr)
	terminal.say("asking the hub for %s", name)
	bar := progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(terminal.w), progressbar.OptionSetDescription(name),
		progressbar.OptionSetVisibility(terminal.w != io.Discard),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(20),
	)
	s, err := hub.Pull(context.Background(), name, &hub.Options{
		Check: basemodel.CheckConfig,
		Progress: func(p hub.Progress) {
			bar.ChangeMax64(p.Total)
			_ = bar.Set64(p.Done) // failing to draw is no reason to stop
		},
		Retry: func(r hub.Retry) {
			terminal.say("")
			fmt.Fprintf(stderr, "art: model pull: try %d of %d: %v; the next in %v\n", r.Try, r.Tries, r.Err, r.Pause)
		},
	})
	terminal.say("")
	_ = bar.Finish()
	if err != nil {
		return err
	}
	if !asJSON {
		return write(stdout, s.Dir+"\n")
	}
	out := pulled{Name: s.Name.Repo, Revision: s.Name.Revision, Commit: s.Commit, Folder: s.Dir}
	for _, name := range s.Files {
		info, err := os.Stat(filepath.Join(s.Dir, name))
		if err != nil {
			return fmt.Errorf("the file has just been fetched: %w", err)
		}
		out.Files = append(out.Files, pulledFile{name, info.Size()})
		out.Bytes += info.Size()
	}
	return writeJSON(stdout, out)
}

func init() {
	verbs["model export"] = verb{
		summary: "write a model with a merged adapter, or an adapter",
		args:    "MODEL FOLDER|FILE",
		runs:    true,
		text: `
Writes a model into a new folder that transformers, vLLM and this library read: config.json, the
weights as safetensors, and the tokenizer. A LoRA adapter, that of the run or that of --adapter
(written by this library or by PEFT), is merged into the weights of its layers.

` + models + `

The merge computes in float32 or float64 and rounds once, to the type that is written. The quantized
weights of a GGUF file are dequantized: four or two bytes each.

With --format peft the adapter alone is written, into a new folder that PEFT and vLLM read; one that
was trained on a GGUF file belongs to the checkpoint on the hub too, and names it where the file
says it. With --format gguf it becomes a new GGUF file, which llama.cpp adds to a GGUF file of the
model with --lora: the one that it was trained on, or one of other types.`,
		define: func(flags *flag.FlagSet) action {
			var e exporter
			flags.BoolVar(&e.asJSON, "json", false, "print one JSON object: folder, files")
			flags.StringVar(&e.adapter, "adapter", "", "`folder` of a LoRA adapter, or of a run")
			flags.StringVar(&e.format, "format", "model", "`what` is written: model, peft or gguf")
			flags.StringVar(&e.dtype, "dtype", model.Float32,
				"`type` of the numbers: float32, or of a model bfloat16, of gguf float16")
			flags.Int64Var(&e.shard, "shard", defaultShard, "maximum `bytes` of weights in a file of a model; 0 is no limit")
			return e.run
		},
	}
}

// defaultShard is how many bytes of weights a file has at most.
const defaultShard = 5e9

// exporter is the verb model export with its flags.
type exporter struct {
	asJSON                 bool
	adapter, format, dtype string
	shard                  int64
}

// exported is what model export prints.
type exported struct {
	Folder string       `json:"folder"` // that the files are in
	Files  []pulledFile `json:"files"`
}

// exportTypes are the values of --dtype for those of --format.
var exportTypes = map[string][]string{
	"model": {model.Float32, model.BFloat16}, "peft": {model.Float32}, "gguf": {model.Float32, "float16"},
}

// noQuantized says of a merged model why there are no further types.
var noQuantized = map[string]string{
	"model": ". Rounding merged weights to a quantized type would change the policy that was trained: to keep the file " +
		"as it is, use it with the adapter (art serve RUN), or quantize what is exported (art model quantize) and measure " +
		"it again",
}

// run writes a model or an adapter.
func (e *exporter) run(args []string, stdout, _ io.Writer) (err error) {
	types, ok := exportTypes[e.format]
	switch {
	case len(args) != 2 || !ok || e.shard < 0:
		return badUsage("want MODEL and FOLDER or FILE, --format model, peft or gguf, and --shard of 0 or more")
	case !slices.Contains(types, e.dtype):
		return badUsage("--format %s --dtype %s: want %s%s", e.format, e.dtype, strings.Join(types, " or "),
			noQuantized[e.format])
	case e.format != "model" && e.shard != defaultShard:
		return badUsage("--format %s --shard %d: an adapter is one file", e.format, e.shard)
	}
	s, err := find(args[0])
	if err == nil {
		s, err = s.with(e.adapter)
	}
	if err != nil {
		return err
	}
	if s.adapter == "" && e.format != "model" {
		return badUsage("--format %s: %s has no adapter; name a run that trains one, or its folder with --adapter", e.format,
			args[0])
	}
	base, err := s.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	var adapter *lora.Adapter
	if s.adapter != "" {
		if adapter, err = lora.Load(s.adapter); err != nil {
			return err
		}
	}
	out := exported{Folder: args[1]}
	switch e.format {
	case "gguf":
		out.Folder = filepath.Dir(args[1])
		err = writeGGUFAdapter(args[1], base, adapter, e.dtype)
	case "peft":
		err = base.ExportPEFT(args[1], s.name, adapter)
	default:
		err = base.Export(args[1], adapter, &model.SaveOptions{DType: e.dtype, ShardBytes: e.shard})
	}
	if err != nil {
		return err
	}
	if out.Files, err = exportedFiles(args[1]); err != nil {
		return err
	}
	if e.asJSON {
		return writeJSON(stdout, out)
	}
	for _, f := range out.Files {
		path := filepath.Join(out.Folder, f.Name)
		if err := write(stdout, fmt.Sprintf("%11s  %s\n", quantity.Bytes(f.Bytes), path)); err != nil {
			return err
		}
	}
	return nil
}

// writeGGUFAdapter writes an adapter into a new file, which is not left there where that fails.
func writeGGUFAdapter(path string, base *basemodel.Base, a *lora.Adapter, dtype string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	kind := map[string]ggml.Type{model.Float32: ggml.F32, "float16": ggml.F16}[dtype]
	if err := errors.Join(base.WriteGGUFAdapter(f, a, kind), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// exportedFiles lists a file, or those in a folder.
func exportedFiles(path string) (list []pulledFile, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return []pulledFile{{filepath.Base(path), info.Size()}}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		if !entry.IsDir() {
			list = append(list, pulledFile{entry.Name(), info.Size()})
		}
	}
	return list, nil
}
