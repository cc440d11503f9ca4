package lora

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

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
func (a *Adapter) Save(dir, baseModelName string) error {
	if err := a.save(dir, baseModelName); err != nil {
		return fmt.Errorf("lora: save adapter: %w", err)
	}
	return nil
}

func (a *Adapter) save(dir, baseModelName string) error {
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

// checkFinite names the layers that hold a number that is not finite.
func checkFinite(layers []Layer) error {
	var errs []error
	for _, l := range layers {
		if !allFinite(l.A) || !allFinite(l.B) || !allFinite(l.Magnitude) {
			errs = append(errs, fmt.Errorf("layer %q has a number that is not finite", l.Name))
		}
	}
	return brief.Errors(errs)
}

// allFinite reports whether no value is NaN or infinite.
func allFinite(values []float32) bool {
	for _, v := range values {
		if v64 := float64(v); math.IsNaN(v64) || math.IsInf(v64, 0) {
			return false
		}
	}
	return true
}

// writeFile writes a file under a temporary name beside it, syncs it and renames it.
func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync()); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
