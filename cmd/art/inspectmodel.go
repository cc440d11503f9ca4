package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// examine describes a model. config is nil when it cannot be used; Problem says why.
func examine(name string) (r inspection, config *model.Config, err error) {
	s, err := find(name)
	if err != nil {
		return r, nil, err
	}
	switch {
	case s.path == tiny.Name:
		r, config, err = examineTiny()
	case basemodel.IsFile(s.path):
		r, config, err = examineGGUF(s.path)
	default:
		r, config, err = examineFolder(s.name, s.path)
	}
	if err != nil {
		return r, nil, err
	}
	r.Model, r.Run = name, s.run
	if s.adapter != "" && config != nil {
		a, err := loadAdapter(s.adapter, config)
		if err != nil {
			return r, config, err
		}
		r.Adapter = &adapterReport{
			Folder: s.adapter, Base: s.name, Rank: a.Config().Rank, Layers: len(a.Layers()), adapter: a,
		}
	}
	return r, config, nil
}

func examineTiny() (r inspection, config *model.Config, err error) {
	w, err := tiny.Load()
	if err != nil {
		return r, nil, err
	}
	count := counter{}
	for _, t := range w.Tensors {
		count.add("F32", int64(len(t.Data)), 4*int64(len(t.Data)))
	}
	r = count.inspection(tiny.Name, "")
	r.Architecture, r.Shape = strings.Join(w.Config.Architectures, ", "), shapeOf(w.Config)
	r.Template = templateOf(tokenizer.New(tiny.Tokenizer()))
	return r, w.Config, nil
}

// examineFolder reads the configuration, and the headers of the weights, where there are any.
func examineFolder(name, dir string) (r inspection, config *model.Config, err error) {
	count, skipped, missing, err := countFolder(dir)
	if err != nil {
		return r, nil, err
	}
	r = count.inspection(name, dir)
	r.Skipped = skipped
	content, err := os.ReadFile(filepath.Join(dir, model.ConfigFile))
	if err != nil {
		return r, nil, err
	}
	var c struct {
		Architectures []string `json:"architectures"`
		ModelType     string   `json:"model_type"`
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return r, nil, in(dir, fmt.Errorf("%s: %w", model.ConfigFile, err))
	}
	r.Architecture = cmp.Or(strings.Join(c.Architectures, ", "), c.ModelType, "unknown") // supported or not
	r.Template = templateOf(tokenizer.Load(dir))
	if config, err = model.LoadConfig(dir); err != nil {
		r.Problem = err.Error()
		return r, nil, nil //nolint:nilerr // the report says it
	}
	r.Shape = shapeOf(config)
	if missing {
		r.Missing = true
		for _, s := range config.Specs() {
			r.Parameters += elements(s.Shape)
		}
	}
	return r, config, nil
}

// countFolder counts the tensors of a folder, and apart from them those that are left alone. It has none where only the
// configuration was fetched. Of a model that cannot be used all are counted.
func countFolder(dir string) (count counter, skipped *storedType, missing bool, err error) {
	count = counter{}
	weights := filepath.Join(dir, model.WeightsFile)
	if !exists(weights) && !exists(weights+".index.json") {
		return count, nil, true, nil
	}
	left := map[string]bool{}
	if c, err := model.Open(dir); err == nil {
		for _, n := range c.Skipped() {
			left[n] = true
		}
		if err := c.Close(); err != nil {
			return count, nil, false, err
		}
	}
	set, err := safetensors.OpenIndex(dir)
	if err != nil {
		return count, nil, false, err
	}
	others := counter{}
	for _, n := range set.Names() {
		t, _ := set.Tensor(n)
		if size := int64(len(t.Data)); left[n] {
			others.add("other", elements(t.Shape), size)
		} else {
			count.add(string(t.DType), elements(t.Shape), size)
		}
	}
	return count, others["other"], false, set.Close()
}

// examineGGUF reads the header of a GGUF file.
func examineGGUF(path string) (r inspection, config *model.Config, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return r, nil, err
	}
	defer f.Close()
	count := counter{}
	for _, n := range f.Names() {
		t, _ := f.Tensor(n)
		count.add(t.Type.String(), elements(t.Shape), int64(len(t.Data)))
	}
	r = count.inspection(path, "")
	arch, _ := f.Value("general.architecture")
	r.Architecture, _ = arch.(string)
	r.Architecture = cmp.Or(r.Architecture, "unknown")
	r.Template = templateOf(tokenizer.FromGGUF(f.Metadata()))
	c, err := model.Open(path)
	if err != nil {
		r.Problem = err.Error()
		return r, nil, nil //nolint:nilerr // the report says it
	}
	r.Shape, r.Architecture = shapeOf(c.Config), strings.Join(c.Config.Architectures, ", ")
	err = r.tensorsOf(c)
	return r, c.Config, errors.Join(err, c.Close())
}

// templateOf describes how chats are rendered, and what of tools is not.
func templateOf(t *tokenizer.Tokenizer, err error) templateReport {
	if err != nil {
		return templateReport{Problem: err.Error()}
	}
	r := templateReport{Bytes: len(t.ChatTemplates()[tokenizer.DefaultTemplate])}
	template, err := chat.New(t, "")
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	r.Parser, r.Warnings = template.Parser(), template.Warnings()
	r.WritesTools, r.WritesCalls = template.WritesTools(), template.WritesCalls()
	return r
}

func shapeOf(c *model.Config) *modelShape {
	return &modelShape{
		Layers: c.NumLayers, Hidden: c.HiddenSize, Heads: c.NumHeads, KVHeads: c.NumKVHeads, HeadDim: c.HeadDim,
		MLP: c.IntermediateSize, Vocab: c.VocabSize, Context: c.MaxPositions, Tied: c.TieEmbeddings,
		Experts: c.NumExperts, ExpertsPerToken: c.ExpertsPerToken, ExpertMLP: c.MoEIntermediateSize,
	}
}

func elements(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}

// counter counts tensors by type.
type counter map[string]*storedType

func (c counter) add(kind string, elements, bytes int64) {
	t := c[kind]
	if t == nil {
		t = &storedType{Type: kind}
		c[kind] = t
	}
	t.Tensors++
	t.Parameters += elements
	t.Bytes += bytes
}

// inspection returns the sums, largest first.
func (c counter) inspection(name, path string) inspection {
	r := inspection{Model: name, Path: path, Types: []storedType{}}
	for _, t := range c {
		r.Types = append(r.Types, *t)
		r.Parameters += t.Parameters
		r.Bytes += t.Bytes
	}
	slices.SortFunc(r.Types, func(a, b storedType) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Type, b.Type))
	})
	return r
}
