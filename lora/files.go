package lora

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/brief"
	"github.com/goart-dev/art/internal/safetensors"
)

// Files of an adapter, and the prefix and suffixes that PEFT adds to the name of a layer.
const (
	weightsFile = "adapter_model.safetensors"
	configFile  = "adapter_config.json"
	keyPrefix   = "base_model.model."
	suffixA     = ".lora_A.weight"
	suffixB     = ".lora_B.weight"
	embeddingA  = ".lora_embedding_A"
	embeddingB  = ".lora_embedding_B"

	magnitudeSuffix = ".lora_magnitude_vector"
)

// Save writes adapter_model.safetensors and adapter_config.json into dir, which it creates if missing. PEFT, vLLM
// and [Load] read them. baseModelName is recorded as the model that the adapter belongs to: a hub name or a path.
//
// Each file is synced under a temporary name and renamed. An adapter with a number that is not finite is not written.
func (a *Adapter) Save(dir, baseModelName string) (err error) {
	defer wrap(&err, "save adapter")
	if err := checkFinite(a.layers); err != nil {
		return err
	}
	config, err := encodePEFT(a.Config(), a.chosen, baseModelName)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err = writeFile(filepath.Join(dir, weightsFile), func(w io.Writer) error {
		return safetensors.Write(w, a.tensors(), map[string]string{"format": "pt"})
	})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, configFile), func(w io.Writer) error {
		_, err := w.Write(config)
		return err
	})
}

// tensors returns all matrices under PEFT's names.
func (a *Adapter) tensors() []safetensors.Tensor {
	var out []safetensors.Tensor
	for _, l := range a.layers {
		rank := l.rank()
		endA, endB := suffixes(l.Embedding)
		out = append(out,
			safetensors.NewFloat32(keyPrefix+l.Name+endA, []int{rank, l.In}, l.A),
			safetensors.NewFloat32(keyPrefix+l.Name+endB, []int{l.Out, rank}, l.B))
		if a.config.DoRA {
			out = append(out, safetensors.NewFloat32(keyPrefix+l.Name+magnitudeSuffix, []int{l.Out}, l.Magnitude))
		}
	}
	return out
}

// suffixes are what PEFT adds to the name of a layer.
func suffixes(embedding bool) (a, b string) {
	if embedding {
		return embeddingA, embeddingB
	}
	return suffixA, suffixB
}

func checkFinite(layers []Layer) error {
	var errs []error
	for _, l := range layers {
		if slices.ContainsFunc([][]float32{l.A, l.B, l.Magnitude}, hasNotFinite) {
			errs = append(errs, fmt.Errorf("layer %q has a number that is not finite", l.Name))
		}
	}
	return brief.Errors(errs)
}

func hasNotFinite(values []float32) bool {
	return slices.ContainsFunc(values, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) })
}

// writeFile writes a file under a temporary name beside it, syncs it and renames it.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	if err := errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Load reads an adapter that [Adapter.Save] or PEFT wrote: adapter_model.safetensors (float32, float16 or bfloat16) and
// adapter_config.json. The modules are chosen as PEFT does, by target_modules, exclude_modules, layers_to_transform and
// layers_pattern, which [Adapter.Save] writes as they were. rsLoRA, DoRA and patterns of rank and alpha are read, and
// adapters of the embedding and the head, beside which PEFT writes the base model's own: those are not read. Anything
// beyond that (modules_to_save, biases) is an error that names it. [Adapter.Check] compares the layers with those
// of a model.
func Load(dir string) (a *Adapter, err error) {
	defer wrap(&err, "load adapter from "+dir)
	content, err := os.ReadFile(filepath.Join(dir, configFile))
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Open(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	a, err = parse(content, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return a, nil
}

func wrap(err *error, what string) {
	if *err != nil {
		*err = fmt.Errorf("lora: %s: %w", what, *err)
	}
}

func parse(config []byte, file *safetensors.File) (*Adapter, error) {
	cfg, chosen, err := decodePEFT(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	layers, err := layerNames(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	a := &Adapter{}
	if a.config, err = cfg.resolve(layers); err != nil {
		return nil, fmt.Errorf("%s: rank_pattern, alpha_pattern: %w", configFile, err)
	}
	var errs []error
	for _, name := range layers {
		layer, err := loadLayer(file, name, a.config)
		a.layers, errs = append(a.layers, layer), append(errs, err)
	}
	if err := brief.Errors(append(errs, checkFinite(a.layers))); err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	a.sort()
	if err := a.choose(chosen); err != nil {
		return nil, err
	}
	return a, a.config.Validate()
}

// baseSuffix is that of the base model's own embedding and head, which PEFT writes beside their adapters.
const baseSuffix = ".base_layer.weight"

// layerNames returns the layers that the tensors of a file belong to. The base model's own weights are left out.
func layerNames(file *safetensors.File) ([]string, error) {
	keys := file.Names()
	var names []string
	var errs []error
	for _, key := range keys {
		name, prefixed := strings.CutPrefix(key, keyPrefix)
		if base, ok := strings.CutSuffix(name, baseSuffix); ok && has(file, keyPrefix+base+matrixOf(file, base)) {
			continue
		}
		ends := 0
		for _, end := range []string{suffixA, suffixB, embeddingA, embeddingB, magnitudeSuffix} {
			if short, ok := strings.CutSuffix(name, end); ok {
				name, ends = short, ends+1
			}
		}
		if !prefixed || ends != 1 || name == "" {
			errs = append(errs, fmt.Errorf("tensor %q is not one of a plain LoRA (%s<layer>%s or B)", key, keyPrefix, suffixA))
			continue
		}
		names = append(names, name)
	}
	if len(keys) == 0 {
		errs = append(errs, errors.New("no tensors"))
	}
	slices.Sort(names)
	return slices.Compact(names), brief.Errors(errs)
}

// matrixOf is the suffix of the first matrix of a layer.
func matrixOf(file *safetensors.File, name string) string {
	if has(file, keyPrefix+name+embeddingA) {
		return embeddingA
	}
	return suffixA
}

func has(file *safetensors.File, key string) bool {
	_, ok := file.Tensor(key)
	return ok
}

// loadLayer reads A, B and the magnitude of one layer, whose sizes follow from the matrices.
func loadLayer(file *safetensors.File, name string, cfg Config) (Layer, error) {
	rank := cfg.LayerRank(name)
	embedding := matrixOf(file, name) == embeddingA
	endA, endB := suffixes(embedding)
	a, shapeA, errA := loadMatrix(file, keyPrefix+name+endA)
	b, shapeB, errB := loadMatrix(file, keyPrefix+name+endB)
	if err := errors.Join(errA, errB); err != nil {
		return Layer{}, err
	}
	if shapeA[0] != rank || shapeB[1] != rank {
		return Layer{}, fmt.Errorf("layer %q has A %v and B %v, which is not [r, in] and [out, r] with r = %d", name, shapeA,
			shapeB, rank)
	}
	shape := LayerShape{Name: name, In: shapeA[1], Out: shapeB[0], Embedding: embedding}
	magnitude, err := loadMagnitude(file, shape, cfg.DoRA)
	return Layer{LayerShape: shape, A: a, B: b, Magnitude: magnitude}, errors.Join(err, checkBase(file, shape))
}

// loadMagnitude reads the magnitude of a layer, which must have one with DoRA, and none without.
func loadMagnitude(file *safetensors.File, l LayerShape, dora bool) ([]float32, error) {
	key := keyPrefix + l.Name + magnitudeSuffix
	t, ok := file.Tensor(key)
	switch {
	case ok && !dora:
		return nil, fmt.Errorf("tensor %q is of DoRA, and use_dora is false in %s", key, configFile)
	case !dora:
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("tensor %q is missing", key)
	case !slices.Equal(t.Shape, []int{l.Out}):
		return nil, fmt.Errorf("tensor %q has shape %v, want [%d]", key, t.Shape, l.Out)
	}
	return t.Float32s()
}

// checkBase reports a base layer in the file of another size than the adapter: that of a vocabulary that was resized.
func checkBase(file *safetensors.File, l LayerShape) error {
	want := []int{l.Out, l.In}
	if l.Embedding {
		want = []int{l.In, l.Out}
	}
	t, ok := file.Tensor(keyPrefix + l.Name + baseSuffix)
	if ok && !slices.Equal(t.Shape, want) {
		return fmt.Errorf("the base layer of %q has shape %v, and its adapter is for %v", l.Name, t.Shape, want)
	}
	return nil
}

// loadMatrix reads a tensor of two dimensions, neither of them 0.
func loadMatrix(file *safetensors.File, key string) (values []float32, shape []int, err error) {
	t, ok := file.Tensor(key)
	if !ok {
		return nil, nil, fmt.Errorf("tensor %q is missing", key)
	}
	if len(t.Shape) != 2 || t.Shape[0] == 0 || t.Shape[1] == 0 {
		return nil, nil, fmt.Errorf("tensor %q has shape %v, want a matrix", key, t.Shape)
	}
	values, err = t.Float32s()
	return values, t.Shape, err
}

// choose checks the layers against the selection, or selects them, and keeps it unless Targets alone determine it.
func (a *Adapter) choose(chosen *selection) error {
	layers := a.shapes()
	if !chosen.targets.isSet() {
		chosen = selectLayers(layers)
	}
	if err := chosen.check(layers); err != nil {
		return err
	}
	a.config.Targets = targetsOf(chosen, layers)
	if !chosen.isPlain(a.config.Targets) {
		a.chosen = chosen
	}
	return nil
}

// targetsOf returns the last name parts of the layers, those of a list in its order.
func targetsOf(chosen *selection, layers []LayerShape) []string {
	there := lastNames(layers)
	var out []string
	for _, module := range chosen.targets.names {
		if target := lastPart(module); slices.Contains(there, target) && !slices.Contains(out, target) {
			out = append(out, target)
		}
	}
	if len(out) < len(there) {
		return there // by a pattern
	}
	return out
}
