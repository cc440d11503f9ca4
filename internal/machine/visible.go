package machine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Device returns the GPU that CUDA numbers n, from 0. env reads the environment, as [os.Getenv] does. The error says
// why it is not known which one that is, or what memory it has.
//
// nvidia-smi lists GPUs by their PCI addresses. CUDA does so with CUDA_DEVICE_ORDER=PCI_BUS_ID, and puts the fastest
// first by default: their numbers are the same where all GPUs are of one kind. CUDA_VISIBLE_DEVICES lists the numbers
// or UUIDs of those that a process has, up to the first that does not exist; empty is the same as not set here, since a
// process without GPUs has no device to ask for.
func (g GPUs) Device(n int, env func(string) string) (GPU, error) {
	if g.Problem != "" {
		return GPU{}, errors.New(g.Problem)
	}
	if len(g.List) == 0 {
		return GPU{}, errors.New("there is no GPU that nvidia-smi lists")
	}
	visible, err := g.visible(env)
	if err != nil {
		return GPU{}, err
	}
	if n < 0 || n >= len(visible) {
		return GPU{}, fmt.Errorf("nvidia-smi lists %d GPUs that this process may use, and none of number %d", len(visible), n)
	}
	switch d := visible[n]; {
	case d.Parts:
		return GPU{}, fmt.Errorf("%s is divided (MIG), and nvidia-smi reports the memory of the whole", d.Name)
	case d.Total == 0 || d.Free == 0:
		return GPU{}, fmt.Errorf("nvidia-smi reports no memory of %s", d.Name)
	default:
		return d, nil
	}
}

// visible lists the GPUs of this process, by their numbers for CUDA.
func (g GPUs) visible(env func(string) string) ([]GPU, error) {
	chosen := strings.TrimSpace(env("CUDA_VISIBLE_DEVICES"))
	if chosen == "" {
		return g.List, g.sameOrder(env)
	}
	var list []GPU
	for name := range strings.SplitSeq(chosen, ",") {
		name = strings.TrimSpace(name)
		at, err := strconv.Atoi(name)
		if err != nil {
			if at, err = g.byUUID(name); err != nil {
				return nil, err
			}
		} else if err := g.sameOrder(env); err != nil {
			return nil, err
		}
		if at < 0 || at >= len(g.List) {
			break
		}
		list = append(list, g.List[at])
	}
	return list, nil
}

// sameOrder reports GPUs that CUDA may number in another order than nvidia-smi does.
func (g GPUs) sameOrder(env func(string) string) error {
	if env("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" {
		return nil
	}
	for _, d := range g.List {
		if first := g.List[0].Name; d.Name != first {
			return fmt.Errorf("it is not known which of %s and %s CUDA lists first: set CUDA_DEVICE_ORDER=PCI_BUS_ID", first,
				d.Name)
		}
	}
	return nil
}

// byUUID returns the number of the GPU whose UUID begins like that, or -1.
func (g GPUs) byUUID(name string) (int, error) {
	if strings.HasPrefix(name, "MIG-") {
		return -1, fmt.Errorf("CUDA_VISIBLE_DEVICES has the part %s of a GPU, whose memory nvidia-smi does not report", name)
	}
	found := -1
	for i, d := range g.List {
		if name == "" || !strings.HasPrefix(d.UUID, name) {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("CUDA_VISIBLE_DEVICES has %q, with which several UUIDs begin", name)
		}
		found = i
	}
	return found, nil
}

// Usable is how many bytes a process may plan with that takes no more than a fraction of the whole memory.
func (d GPU) Usable(fraction float64) int64 {
	return min(d.Free, int64(fraction*float64(d.Total)))
}
