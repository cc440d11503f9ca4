package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// matricesOf returns the type for a value of the option Weights.
func matricesOf(op, weights string, device compute.Backend) (dtypes.DType, error) {
	unsupported := func(what, hint string) (dtypes.DType, error) {
		err := fmt.Errorf("%w: %q does not multiply %s", art.ErrDevice, device.Name(), what)
		return 0, &art.Error{Op: op, Err: err, Hint: hint}
	}
	switch weights {
	case "float32":
		return dtypes.Float32, nil
	case "bfloat16":
		if !graphx.MultipliesBFloat16(device) {
			return unsupported("bfloat16 matrices",
				`use the CPU device or one of XLA, or "float32" for Weights of local.Options`)
		}
		return dtypes.BFloat16, nil
	case "stored":
		if !keepsBlocks(device) {
			return unsupported("the matrices of GGUF files as they are stored",
				`use the CPU device, or "float32", "bfloat16" or "int8" for Weights of local.Options`)
		}
		return model.Stored, nil
	case "int8":
		if !graphx.ComputesBFloat16(device) {
			return unsupported("int8 matrices",
				`choose a device of XLA, or use "float32" or "bfloat16" for Weights of local.Options`)
		}
		return dtypes.Int8, nil
	}
	return 0, invalid(op, `use "stored", "float32", "bfloat16" or "int8"`, "Weights is %q", weights)
}

// keepsBlocks reports whether a device multiplies by the blocks of a GGUF file.
func keepsBlocks(device compute.Backend) bool {
	_, ok := device.(graphx.QuantizedPacker)
	return ok
}

// checkHeld checks the options Weights and Activations.
func checkHeld(o *Options, device compute.Backend) error {
	_, err := matricesOf("open", cmp.Or(o.Weights, "float32"), device)
	switch {
	case err != nil:
		return err
	case o.Activations == "", o.Activations == "float32":
		return nil
	case o.Activations != "int8":
		return invalid("open", `use "float32" or "int8"`, "Activations is %q", o.Activations)
	case !keepsBlocks(device):
		return &art.Error{
			Op: "open", Err: fmt.Errorf("%w: %q does not round activations", art.ErrDevice, device.Name()),
			Hint: "use the CPU device, or leave Activations of local.Options empty",
		}
	case o.Weights != "" && o.Weights != "stored":
		return invalid("open", `set Weights of local.Options to "stored", with a GGUF file`,
			"Activations is %q, and Weights %q: only products with quantized matrices round activations", o.Activations,
			o.Weights)
	}
	return nil
}

// heldOf chooses how a model's base is held, see [Options].Weights and [Options].Activations.
func (b *Backend) heldOf(name string, opts art.ModelOptions, at location) (baseKey, error) {
	started, err := b.started(runs.Reference{Project: opts.Project, Name: name})
	if err == nil && started == nil && opts.Fork != "" {
		var of runs.Reference
		if of, err = runs.ParseReference(opts.Fork, opts.Project); err == nil {
			started, err = b.started(of)
		}
	}
	switch {
	case err != nil:
		return baseKey{}, err
	case started != nil:
		return b.heldAs(at.path, *started), nil
	}
	usual := "float32"
	if !opts.Full && at.path != tiny.Name && basemodel.IsFile(at.path) && keepsBlocks(b.device) {
		usual = "stored"
	}
	return b.heldAs(at.path, description{Weights: usual}), nil
}

// heldAs is how a base is held for a run that was started. The numbers of "stored" are those of "float32".
func (b *Backend) heldAs(path string, d description) baseKey {
	key := baseKey{path, cmp.Or(b.opts.Weights, d.weights()), cmp.Or(b.opts.Activations, d.Activations), d.RopeContext}
	if b.opts.Weights == "" && key.weights == "stored" && !keepsBlocks(b.device) {
		key.weights = "float32"
	}
	if key.activations == "float32" {
		key.activations = ""
	}
	return key
}

// started reads what a run was begun with; nil: there is none, or it never started.
func (b *Backend) started(of runs.Reference) (*description, error) {
	reader, err := runs.NewReader(of.Dir(b.opts.Dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	steps, err := reader.Steps()
	if err != nil {
		return nil, err
	}
	var d description
	if err := reader.Model(&d); err != nil || len(steps) == 0 && !d.Frozen {
		return nil, err
	}
	return &d, nil
}
