package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/schollz/progressbar/v3"

	"github.com/goart-dev/art/internal/basemodel"
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
		Check: model.CheckConfig,
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
		summary: "write a model, with a merged adapter",
		args:    "MODEL FOLDER",
		runs:    true,
		text: `
Writes a model into a new folder that transformers, vLLM and this library read: config.json, the
weights as safetensors, and the tokenizer. A LoRA adapter, that of the run or that of --adapter
(written by this library or by PEFT), is merged into the weights of its layers.

` + models + `

The merge computes in float32 or float64 and rounds once, to the type that is written. The quantized
weights of a GGUF file are dequantized: four or two bytes each.`,
		define: func(flags *flag.FlagSet) action {
			var e exporter
			flags.BoolVar(&e.asJSON, "json", false, "print one JSON object: folder, files")
			flags.StringVar(&e.adapter, "adapter", "", "`folder` of a LoRA adapter, or of a run")
			flags.StringVar(&e.dtype, "dtype", model.Float32, "float32 or bfloat16, the `type` of the weights")
			flags.Int64Var(&e.shard, "shard", 5e9, "maximum `bytes` of weights in a file; 0 is no limit")
			return e.run
		},
	}
}

// exporter is the verb model export with its flags.
type exporter struct {
	asJSON         bool
	adapter, dtype string
	shard          int64
}

// exported is what model export prints.
type exported struct {
	Folder string       `json:"folder"`
	Files  []pulledFile `json:"files"`
}

// run writes a model.
func (e *exporter) run(args []string, stdout, _ io.Writer) (err error) {
	if len(args) != 2 || e.shard < 0 {
		return badUsage("want MODEL and FOLDER, and --shard of 0 or more")
	}
	if e.dtype != model.Float32 && e.dtype != model.BFloat16 {
		return badUsage("--dtype %s: want float32 or bfloat16. Rounding merged weights to a quantized type would change the "+
			"policy that was trained: to keep the file as it is, use it with the adapter (art serve RUN), or quantize what is "+
			"exported with llama-quantize and measure it again", e.dtype)
	}
	dir := args[1]
	s, err := find(args[0])
	if err == nil {
		s, err = s.with(e.adapter)
	}
	if err != nil {
		return err
	}
	base, err := basemodel.Open(s.path)
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
	if err := base.Export(dir, adapter, &model.SaveOptions{DType: e.dtype, ShardBytes: e.shard}); err != nil {
		return err
	}
	out := exported{Folder: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			out.Files = append(out.Files, pulledFile{entry.Name(), info.Size()})
		}
	}
	if e.asJSON {
		return writeJSON(stdout, out)
	}
	for _, f := range out.Files {
		if err := write(stdout, fmt.Sprintf("%11s  %s\n", quantity.Bytes(f.Bytes), filepath.Join(dir, f.Name))); err != nil {
			return err
		}
	}
	return nil
}
