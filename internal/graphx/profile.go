package graphx

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
)

// Profile is what the code around a device must know to use it well. It stands in a table here because the devices of
// GoMLX and go-xla cannot be asked.
type Profile struct {
	// SlowCompile is set where compiling a graph takes seconds. Batches are then padded to few shapes.
	SlowCompile bool
	// TokensPerCall is the number of tokens that each sequence gets per call while decoding: more than one where the
	// device runs the loop itself, because a call costs a synchronisation, and a gather of what its sequences have cached.
	TokensPerCall int
	// FusedAttention is set where attention keeps no scores in memory.
	FusedAttention bool
	// GathersMatrices is set where a matmul of rows with matrices that are gathered for each of them reads these where
	// they are, each once.
	GathersMatrices bool
	// NoLoops is set where functions of a graph only declare operations of the device.
	NoLoops bool
	// BFloat16 is set where the device multiplies bfloat16 matrices with float32 accumulation.
	BFloat16 bool
	// Serial is set where one run has all of the device, as on a GPU: another at the same time takes memory and gains
	// nothing. Elsewhere runs at once divide the cores of the process, and keep them busier than one.
	Serial bool
	// OwnMemory is set where tensors live in memory of the device, not in that of the machine.
	OwnMemory bool
}

// profiles by the name under which a device is registered.
var profiles = map[string]Profile{
	"cpu": {TokensPerCall: 1, FusedAttention: true, GathersMatrices: true, NoLoops: true, BFloat16: true},
	"xla": {SlowCompile: true, TokensPerCall: 32, BFloat16: true, Serial: true, OwnMemory: true},
}

// ProfileOf returns the profile of a device.
func ProfileOf(device compute.Backend) Profile { return NamedProfile(OpenedAs(device)) }

// OpenedAs returns the name by which a device could be opened. That of devices of XLA has the plug-in: "xla:cuda".
func OpenedAs(device compute.Backend) string {
	if d, ok := device.(interface{ OpenedAs() string }); ok {
		return d.OpenedAs()
	}
	return device.Name()
}

// RunsAtOnce is how many runs keep a device busy.
func (p Profile) RunsAtOnce() int {
	if p.Serial {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// NamedProfile returns the profile of the device that a name opens: its name in GoMLX's registry, optionally followed
// by a colon and a configuration.
func NamedProfile(name string) Profile {
	kind, config, _ := strings.Cut(name, ":")
	p := profiles[kind]
	p.TokensPerCall = cmp.Or(p.TokensPerCall, 1)
	if plugin, _, _ := strings.Cut(config, ","); plugin == "cpu" {
		p.OwnMemory, p.Serial = false, false
	}
	return p
}

// GPU says which GPU of CUDA a device of XLA is, and how much of its memory it takes at most.
type GPU struct {
	Number   int     // among those of the process
	Fraction float64 // of the whole memory: the option memory_fraction, or 0.75, which is XLA's default
	// Preallocated is set where the device takes that much when it is opened.
	Preallocated bool
}

// NamedGPU returns the GPU of the device that a name opens: "xla:cuda,device=1". An error says why it is not known.
func NamedGPU(name string) (GPU, error) {
	kind, config, _ := strings.Cut(name, ":")
	plugin, options, _ := strings.Cut(config, ",")
	if kind != "xla" || plugin != "cuda" {
		return GPU{}, fmt.Errorf("%q does not say that it is a GPU of NVIDIA: its name is xla:cuda", name)
	}
	g := GPU{Fraction: 0.75}
	for option := range strings.SplitSeq(options, ",") {
		var err error
		switch key, value, _ := strings.Cut(option, "="); key {
		case "device":
			g.Number, err = strconv.Atoi(value)
		case "memory_fraction":
			g.Fraction, err = strconv.ParseFloat(value, 64)
		case "preallocate":
			g.Preallocated, err = strconv.ParseBool(value)
		case "visible_devices":
			err = errors.New("it numbers GPUs anew: set CUDA_VISIBLE_DEVICES in its place")
		}
		if err != nil {
			return GPU{}, fmt.Errorf("option %q: %w", option, err)
		}
	}
	return g, nil
}

// HasFlashAttention reports whether a device has a kernel of causal attention in bfloat16 which keeps no scores, and
// one of its gradient (FlashAttention-2, Dao 2023; cuDNN's on GPUs of NVIDIA), for heads of a dimension.
func HasFlashAttention(device compute.Backend, headDim int) bool {
	f, ok := device.(interface{ FlashAttention(headDim int) bool })
	return ok && f.FlashAttention(headDim)
}

// Packs reports whether a device is a [Packer], which converts packed matrices as it reads them.
func Packs(device compute.Backend) bool {
	_, ok := device.(Packer)
	return ok
}

// ComputesBFloat16 reports whether a device multiplies in bfloat16 itself, which a KV cache in bfloat16 and matrices of
// int8 need.
func ComputesBFloat16(device compute.Backend) bool {
	return !Packs(device) && ProfileOf(device).BFloat16
}

// MultipliesBFloat16 reports whether a device multiplies bfloat16 matrices with float32 accumulation.
func MultipliesBFloat16(device compute.Backend) bool {
	return Packs(device) || ProfileOf(device).BFloat16
}
