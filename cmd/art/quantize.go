package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/stable"
	"github.com/goart-dev/art/model"
)

func init() {
	verbs["model quantize"] = verb{
		summary: "write a model as a GGUF file of few bits",
		args:    "MODEL FILE.gguf",
		runs:    true,
		text: `
Writes a model as a GGUF file that llama.cpp and this library read, with its tokenizer and chat
template. The blocks are those of llama.cpp's llama-quantize without an importance matrix, to the
bit. Bits of a weight, roughly:

  Q8_0     8.5   differs hardly from the original
  Q6_K     6.6
  Q4_K_M   4.9   the more sensitive half of two matrices of a layer has Q6_K; the default
  Q4_K     4.5   all matrices but the head
  Q4_0     4.5   as Q4_K, with more error

The head has Q6_K at least, vectors are float32, and rows that are no whole blocks get the nearest
type with smaller blocks.

` + models + `

An adapter is to be merged first: art model export. What is quantized already, in a GGUF file, is
dequantized first, and loses a little more. Models and tokenizers that llama.cpp does not have are
refused.`,
		define: func(flags *flag.FlagSet) action {
			var q quantizer
			flags.BoolVar(&q.asJSON, "json", false, "print one JSON object: file, bytes, type, tensors")
			flags.StringVar(&q.kind, "type", "Q4_K_M", strings.Join(model.GGUFTypes(), ", ")+": the `type` of the matrices")
			flags.BoolVar(&q.overwrite, "overwrite", false, "replace a file that is there")
			return q.run
		},
	}
}

// quantizer is the verb model quantize with its flags.
type quantizer struct {
	asJSON, overwrite bool
	kind              string
}

// quantizedFile is what model quantize prints.
type quantizedFile struct {
	File    string         `json:"file"`
	Bytes   int64          `json:"bytes"`
	Type    string         `json:"type"`
	Tensors map[string]int `json:"tensors"` // number by type
}

func (q *quantizer) run(args []string, stdout, stderr io.Writer) (err error) {
	if len(args) != 2 || !slices.Contains(model.GGUFTypes(), q.kind) {
		return badUsage("want MODEL and FILE.gguf, and --type %s", strings.Join(model.GGUFTypes(), ", "))
	}
	path := args[1]
	s, err := find(args[0])
	if err != nil {
		return err
	}
	if s.adapter != "" {
		return fmt.Errorf("%s has an adapter: merge it first, art model export %s FOLDER, and quantize FOLDER", args[0],
			args[0])
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder: name a file", path)
	case err == nil && !q.overwrite:
		return fmt.Errorf("%s is there already: name another file, or replace it with --overwrite", path)
	}
	base, err := s.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	out := quantizedFile{File: path, Type: q.kind, Tensors: map[string]int{}}
	terminal, warned := newProgress(stderr), false
	options := &model.GGUFOptions{Type: q.kind, Name: filepath.Base(s.name), Tensor: func(name, from, to string) {
		if from != to && !warned && (strings.HasPrefix(from, "Q") || strings.HasPrefix(from, "IQ") || from == "MXFP4") {
			warned = true
			terminal.say("")
			fmt.Fprintf(stderr, "art: model quantize: %s is quantized already, as %s of %s: it is dequantized first, and loses "+
				"more than the original weights would\n", args[0], from, name)
		}
		out.Tensors[to]++
		terminal.say("%s: %s", name, to)
	}}
	err = stable.Disk{}.ReplaceWith(path, func(w io.Writer) error { return base.WriteGGUF(w, options) })
	terminal.say("")
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if out.Bytes = info.Size(); q.asJSON {
		return writeJSON(stdout, out)
	}
	return write(stdout, fmt.Sprintf("%11s  %s\n", quantity.Bytes(out.Bytes), path))
}
