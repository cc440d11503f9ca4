package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

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
			return func(args []string, stdout, _ io.Writer) error {
				if len(args) != 2 || e.shard < 0 || e.dtype != model.Float32 && e.dtype != model.BFloat16 {
					return badUsage("want MODEL and FOLDER, --dtype float32 or bfloat16, and --shard of 0 or more")
				}
				return e.export(args[0], args[1], stdout)
			}
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

// export writes a model.
func (e exporter) export(name, dir string, stdout io.Writer) (err error) {
	s, err := find(name)
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
	out, err := listFolder(dir)
	if err != nil {
		return err
	}
	if e.asJSON {
		return writeJSON(stdout, out)
	}
	for _, f := range out.Files {
		if err := write(stdout, fmt.Sprintf("%11s  %s\n", sizeText(f.Bytes), filepath.Join(dir, f.Name))); err != nil {
			return err
		}
	}
	return nil
}

// listFolder lists the files of a folder.
func listFolder(dir string) (exported, error) {
	out := exported{Folder: dir}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		info, statErr := entry.Info()
		if statErr != nil {
			return out, statErr
		}
		if !entry.IsDir() {
			out.Files = append(out.Files, pulledFile{entry.Name(), info.Size()})
		}
	}
	return out, err
}
