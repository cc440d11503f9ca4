package graphx

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

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
