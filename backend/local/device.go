package local

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/quantity"
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

// cacheTypes are the types of a KV cache, by their names in Options.
var cacheTypes = map[string]dtypes.DType{"": dtypes.Float32, "float32": dtypes.Float32, "bfloat16": dtypes.BFloat16}

// checkCacheType checks the option CacheType.
func checkCacheType(option string, device compute.Backend) error {
	kind, ok := cacheTypes[option]
	if !ok {
		return invalid("open", `use "float32" or "bfloat16"`, "CacheType is %q", option)
	}
	if kind == dtypes.BFloat16 && !graphx.ComputesBFloat16(device) {
		return &art.Error{
			Op: "open", Err: fmt.Errorf("%w: %q has no cache in bfloat16", art.ErrDevice, device.Name()),
			Hint: "leave CacheType of local.Options empty, or use a device of XLA",
		}
	}
	return nil
}

// cacheType returns the type of the cache of a model, as an option.
func (b *Backend) cacheType(c *model.Config, matrices dtypes.DType) string {
	if matrices != dtypes.Float32 && graphx.ComputesBFloat16(b.device) && graphx.HasFlashAttention(b.device, c.HeadDim) {
		return cmp.Or(b.opts.CacheType, "bfloat16")
	}
	return b.opts.CacheType
}

// measureGPUs has the plan follow what is free of the GPUs, which have their own memory, and logs what it found. Where
// that is not known, nothing changes.
func (b *Backend) measureGPUs() {
	if !b.memory.Profile.OwnMemory {
		return
	}
	names := []string{gpuName(b.device, b.opts.Device)}
	for i, r := range b.replicas {
		names = append(names, gpuName(r, b.opts.Replicas[i]))
	}
	bytes, err := usableOf(names, machine.InspectGPUs(os.DirFS("/")), os.Getenv)
	if err != nil {
		b.opts.Logger.Warn("the memory of the device is not known: the defaults of Slots, Context and CacheTokens fit into "+
			gigabytes(plan.UnknownFree)+" beside the weights; set them in local.Options to choose otherwise", "why", err)
		return
	}
	b.memory.Free = func() (int64, bool) { return bytes, true }
	b.opts.Logger.Info("memory of the device", "usable", gigabytes(float64(bytes)))
}

// gpuName is the name of a device with its plug-in, which "xla" leaves open, and with the options that it was opened
// with.
func gpuName(device compute.Backend, opened string) string {
	name := graphx.OpenedAs(device)
	if _, options, ok := strings.Cut(opened, ","); ok {
		name += "," + options
	}
	return name
}

// usableOf is how many bytes can be planned with on each of some devices that were just opened. Nothing of it is used
// yet, but for what CUDA takes.
func usableOf(names []string, gpus machine.GPUs, env func(string) string) (int64, error) {
	least := int64(math.MaxInt64)
	for _, name := range names {
		named, err := graphx.NamedGPU(name)
		if err != nil {
			return 0, err
		}
		gpu, err := gpus.Device(named.Number, env)
		if err != nil {
			return 0, err
		}
		if named.Preallocated {
			gpu.Free = gpu.Total // what the device has taken is its own
		}
		least = min(least, gpu.Usable(named.Fraction))
	}
	if least <= 0 {
		return 0, errors.New("the option memory_fraction leaves nothing")
	}
	return least, nil
}

// book chooses the slots, the context and the tokens of the cache of a base model, whose weights take so many bytes (0:
// what their type makes of them), and books the memory that it takes:
// see [plan.Device.Book]. Impossible options, and those that do not fit, are [art.ErrInvalid].
func (b *Backend) book(c *model.Config, matrices dtypes.DType, weights float64) (plan.Booking, error) {
	want := b.opts
	if want.Context > c.MaxPositions || want.Context == 1 {
		return plan.Booking{}, invalid("register", "change Context of local.Options",
			"a context of %d tokens, where the model has 2 to %d", want.Context, c.MaxPositions)
	}
	if want.CacheTokens != 0 && want.CacheTokens < max(2, want.Context) {
		return plan.Booking{}, invalid("register", "raise CacheTokens of local.Options, or lower Context",
			"a cache of %d tokens, for requests of up to %d", want.CacheTokens, max(2, want.Context))
	}
	p, ok := b.memory.Book(plan.Sampling{
		Config: c, Slots: want.Slots, Context: want.Context, CacheTokens: want.CacheTokens,
		Matrices: matrices, CacheType: cacheTypes[b.cacheType(c, matrices)], WeightBytes: weights,
	}, plan.Sizes{MicroTokens: want.MicroTokens, Recompute: want.Recompute, Narrow: want.MicroTokens > 0})
	if ok {
		return p, nil
	}
	have := fmt.Sprintf("%s are free", gigabytes(p.Room.Bytes))
	if !p.Known {
		have = "that is more than any machine has"
	}
	if p.Others > 0 {
		have += fmt.Sprintf(", and %s are planned for other base models", gigabytes(p.Others))
	}
	hint := `lower Slots, Context and CacheTokens of local.Options, use Weights "stored" for a GGUF file or "bfloat16", ` +
		`or a machine with more memory`
	if b.memory.Profile.OwnMemory {
		hint += "; XLA takes three quarters of a GPU: memory_fraction=0.95 behind the name of the device gives more"
	}
	return p, invalid("register", hint, "%s, a context of %d and a cache of %d tokens take %s of memory, with %s for "+
		"the weights and %s for keys and values; %s", quantity.Of(p.Slots, "slot"), p.Context, p.CacheTokens,
		gigabytes(p.Least()), gigabytes(p.Weights), gigabytes(p.Cache), have)
}

// gigabytes formats a size.
func gigabytes(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/(1<<30)) }

// fit chooses how much memory the training of sequences takes, see [Options].Recompute, and refuses those of which one
// alone does not fit into free memory, before anything is computed. Where the free memory is not known, nothing is
// lowered and nothing refused. On a device with memory of its own nothing is refused either: what it compiles may take
// less than is estimated, and where it does not, the device's error ends neither the process nor the run.
func (b *Backend) fit(op string, e *entry, sequences []grpo.Sequence) error {
	longest := 0
	for i := range sequences {
		longest = max(longest, sequences[i].NumInputs())
	}
	t := e.learner(b)
	before := t.Sizes()
	takes, free, ok := b.memory.Fit(func(bytes float64) (takes float64, lowered, ok bool) {
		takes, ok = t.Fit(longest, bytes)
		return takes, t.Lowered(), ok
	})
	if !ok {
		hint := "leave it out, or make it shorter: lower MaxTokens, or Context of local.Options; art model inspect tells " +
			"what lengths take"
		if b.opts.MicroTokens > 0 {
			hint += "; lower MicroTokens of local.Options"
		}
		return invalid(op, hint, "a sequence of %d tokens takes about %s, and %s are free", longest, gigabytes(takes),
			gigabytes(free))
	}
	if now := t.Sizes(); now != before {
		b.opts.Logger.Info("memory of the training", "op", op, "bytes", int64(takes), "recompute", now.Recompute,
			"micro_tokens", now.MicroTokens, "narrow", now.Narrow, "workers", now.Workers)
	}
	return nil
}
