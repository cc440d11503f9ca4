package local

import (
	"errors"
	"math"
	"os"
	"strings"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/plan"
)

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
