package lora

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/safetensors"
)

// Load reads an adapter that [Adapter.Save] or PEFT wrote: adapter_model.safetensors (float32, float16 or bfloat16) and
// adapter_config.json. What plain LoRA does not have (DoRA, rsLoRA, patterns of rank or alpha, modules_to_save, biases,
// adapted embeddings) is an error that names it. Whether the layers are those of a model is for [Adapter.Check] to say.
func Load(dir string) (*Adapter, error) {
	a, err := load(dir)
	if err != nil {
		return nil, fmt.Errorf("lora: load adapter from %s: %w", dir, err)
	}
	return a, nil
}

func load(dir string) (*Adapter, error) {
	content, err := os.ReadFile(filepath.Join(dir, configFile))
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Open(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	a, err := parse(content, file)
	return a, errors.Join(err, file.Close())
}

// parse reads an adapter of both its files.
func parse(config []byte, file *safetensors.File) (*Adapter, error) {
	cfg, modules, err := decodePEFT(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	a := &Adapter{config: cfg}
	if a.layers, err = loadLayers(file, cfg.Rank); err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	a.sort()
	if err := a.matchModules(modules); err != nil {
		return nil, err
	}
	return a, a.config.Validate()
}

// loadLayers reads the matrices of all layers.
func loadLayers(file *safetensors.File, rank int) ([]Layer, error) {
	names, err := layerNames(file.Names())
	if err != nil {
		return nil, err
	}
	var layers []Layer
	var errs []error
	for _, name := range names {
		layer, err := loadLayer(file, name, rank)
		layers, errs = append(layers, layer), append(errs, err)
	}
	return layers, errors.Join(append(errs, checkFinite(layers))...)
}

// layerNames returns the layers that the keys of a file belong to.
func layerNames(keys []string) ([]string, error) {
	var names []string
	var errs []error
	for _, key := range keys {
		name, prefixed := strings.CutPrefix(key, keyPrefix)
		name, isA := strings.CutSuffix(name, suffixA)
		name, isB := strings.CutSuffix(name, suffixB)
		if !prefixed || isA == isB || name == "" {
			errs = append(errs, fmt.Errorf("tensor %q is not one of a plain LoRA (%s<layer>%s or B)", key, keyPrefix, suffixA))
			continue
		}
		names = append(names, name)
	}
	if len(keys) == 0 {
		errs = append(errs, errors.New("no tensors"))
	}
	slices.Sort(names)
	return slices.Compact(names), errors.Join(errs...)
}

// loadLayer reads A and B of one layer; its sizes are those of the matrices.
func loadLayer(file *safetensors.File, name string, rank int) (Layer, error) {
	a, shapeA, errA := loadMatrix(file, keyPrefix+name+suffixA)
	b, shapeB, errB := loadMatrix(file, keyPrefix+name+suffixB)
	if err := errors.Join(errA, errB); err != nil {
		return Layer{}, err
	}
	if shapeA[0] != rank || shapeB[1] != rank {
		return Layer{}, fmt.Errorf("layer %q has A %v and B %v, which is not [r, in] and [out, r] with r = %d", name, shapeA, shapeB, rank)
	}
	return Layer{LayerShape: LayerShape{Name: name, In: shapeA[1], Out: shapeB[0]}, A: a, B: b}, nil
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

// matchModules checks that layers and target_modules fit together. Without target_modules (nil: there is a pattern
// instead) the targets are taken from the layers.
func (a *Adapter) matchModules(modules []string) error {
	if modules == nil {
		a.config.Targets = lastNames(a.shapes())
		return nil
	}
	used := map[string]bool{}
	var errs []error
	for _, l := range a.layers {
		matches := slices.DeleteFunc(slices.Clone(modules), func(module string) bool {
			return l.Name != module && !strings.HasSuffix(l.Name, "."+module)
		})
		if len(matches) == 0 {
			errs = append(errs, fmt.Errorf("layer %q is not in target_modules %v", l.Name, modules))
		}
		for _, module := range matches {
			used[module] = true
		}
	}
	for _, module := range modules {
		if !used[module] {
			errs = append(errs, fmt.Errorf("target module %q has no tensors", module))
		}
	}
	return errors.Join(errs...)
}
