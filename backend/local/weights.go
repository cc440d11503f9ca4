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
		if !model.MultipliesBFloat16(device) {
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
		if !model.ComputesBFloat16(device) {
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

// weightsOf chooses the type of the base's matrices for a model, see [Options].Weights.
func (b *Backend) weightsOf(name string, opts art.ModelOptions, at location) (string, error) {
	if b.opts.Weights != "" {
		return b.opts.Weights, nil
	}
	started, err := b.started(runs.Reference{Project: opts.Project, Name: name})
	if err == nil && started == nil && opts.Fork != "" {
		var of runs.Reference
		if of, err = runs.ParseReference(opts.Fork, opts.Project); err == nil {
			started, err = b.started(of)
		}
	}
	switch {
	case err != nil:
		return "", err
	case started != nil:
		return b.heldAs(*started), nil
	case !opts.Full && at.path != tiny.Name && basemodel.IsFile(at.path) && keepsBlocks(b.device):
		return "stored", nil
	}
	return "float32", nil
}

// heldAs is the type of the base's matrices for a run that was started. The numbers of "stored" are those of "float32".
func (b *Backend) heldAs(d description) string {
	weights := cmp.Or(b.opts.Weights, d.weights())
	if b.opts.Weights == "" && weights == "stored" && !keepsBlocks(b.device) {
		return "float32"
	}
	return weights
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
