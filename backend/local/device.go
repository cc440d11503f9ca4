package local

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/model"
)

// openDevice opens a device of GoMLX's registry. A name is that of the device, optionally followed by a colon and its
// configuration.
func openDevice(name string) (compute.Backend, error) {
	name = cmp.Or(name, cpu.Name)
	known := compute.List()
	kind, _, _ := strings.Cut(name, ":")
	if !slices.Contains(known, kind) {
		slices.Sort(known)
		return nil, &art.Error{
			Op:   "open",
			Err:  fmt.Errorf("%w: no device is called %q; known are %s", art.ErrDevice, kind, strings.Join(known, ", ")),
			Hint: `import the package of the device: for those of XLA, import _ "github.com/goart-dev/art/backend/device/xla"`,
		}
	}
	var device compute.Backend
	var err error
	if caught := graphx.Try(func() { device, err = compute.NewWithConfig(name) }); caught != nil {
		err = caught // some devices panic
	}
	if err != nil {
		return nil, &art.Error{Op: "open", Err: fmt.Errorf("%w: %q: %w", art.ErrDevice, name, err)}
	}
	return device, nil
}

// deviceError returns an error with [art.ErrDevice] where a device says that it has failed, as those of XLA do.
func deviceError(err error) error {
	if isDeviceFault(err) && !errors.Is(err, art.ErrDevice) {
		return fmt.Errorf("%w: %w", art.ErrDevice, err)
	}
	return err
}

// isDeviceFault reports whether a device has failed.
func isDeviceFault(err error) bool {
	var fault interface{ DeviceFault() error }
	return errors.As(err, &fault)
}

// matricesOf returns the type for the option Weights.
func matricesOf(weights string, device compute.Backend) (dtypes.DType, error) {
	switch weights {
	case "", "float32":
		return dtypes.Float32, nil
	case "bfloat16":
		if model.MultipliesBFloat16(device) {
			return dtypes.BFloat16, nil
		}
		return 0, &art.Error{
			Op: "open", Err: fmt.Errorf("%w: %q does not multiply bfloat16 matrices", art.ErrDevice, device.Name()),
			Hint: `leave Weights of local.Options empty, or use the CPU device or one of XLA`,
		}
	case "int8":
		if model.ComputesBFloat16(device) {
			return dtypes.Int8, nil
		}
		return 0, &art.Error{
			Op: "open", Err: fmt.Errorf("%w: %q does not multiply int8 matrices", art.ErrDevice, device.Name()),
			Hint: `use "float32" or "bfloat16" for Weights of local.Options, or a device of XLA`,
		}
	}
	err := fmt.Errorf("%w: Weights is %q", art.ErrInvalid, weights)
	return 0, &art.Error{Op: "open", Err: err, Hint: `use "float32", "bfloat16" or "int8"`}
}

// cacheTypes are the types of a KV cache, by their names in Options.
var cacheTypes = map[string]dtypes.DType{
	"": dtypes.Float32, "float32": dtypes.Float32, "bfloat16": dtypes.BFloat16,
}

// checkCacheType checks the option CacheType.
func checkCacheType(option string, device compute.Backend) error {
	kind, ok := cacheTypes[option]
	if !ok {
		err := fmt.Errorf("%w: CacheType is %q", art.ErrInvalid, option)
		return &art.Error{Op: "open", Err: err, Hint: `use "float32" or "bfloat16"`}
	}
	if kind == dtypes.BFloat16 && !model.ComputesBFloat16(device) {
		return &art.Error{
			Op: "open", Err: fmt.Errorf("%w: %q has no cache in bfloat16", art.ErrDevice, device.Name()),
			Hint: "leave CacheType of local.Options empty, or use a device of XLA",
		}
	}
	return nil
}

// cacheType returns the type of the cache of a model, as an option.
func (b *Backend) cacheType(c *model.Config) string {
	if b.matrices != dtypes.Float32 && model.ComputesBFloat16(b.device) && model.HasFlashAttention(b.device, c) {
		return cmp.Or(b.opts.CacheType, "bfloat16")
	}
	return b.opts.CacheType
}
