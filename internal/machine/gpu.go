package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// GPUs are those of NVIDIA, as nvidia-smi reports them: go-xla does not report the kind and the memory of its devices.
type GPUs struct {
	List    []GPU  `json:"gpus,omitempty"`
	Problem string `json:"gpus_problem,omitempty"` // why nothing is known although there may be a GPU
}

// GPU is one of them.
type GPU struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Total  int64  `json:"memory_total_bytes,omitempty"` // 0 when it has no memory of its own
	Free   int64  `json:"memory_free_bytes,omitempty"`

	UUID  string `json:"-"`
	Parts bool   `json:"-"` // a process sees a part of it (MIG), whose memory is not the one above
}

// smiTime is how long nvidia-smi may take: a driver may hang.
const smiTime = 20 * time.Second

// smi returns a line for each GPU, in the order of their PCI addresses: name, driver version, MiB of memory, total and
// free, UUID, and whether it is in parts. It gives up after a time.
func smi(after time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	c := exec.CommandContext(ctx, "nvidia-smi",
		"--query-gpu=name,driver_version,memory.total,memory.free,uuid,mig.mode.current", "--format=csv,noheader,nounits")
	c.WaitDelay = time.Second // do not wait for a child process that survives and holds the output open
	out, err := c.Output()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = fmt.Errorf("nvidia-smi: no answer in %v", after)
	case len(out) > 0:
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out))) // it writes its explanation to standard output
	}
	return string(out), err
}

// InspectGPUs returns the GPUs of this machine. fsys is its file system, os.DirFS("/").
func InspectGPUs(fsys fs.FS) GPUs { return inspectGPUs(fsys, smi) }

func inspectGPUs(fsys fs.FS, ask func(after time.Duration) (string, error)) GPUs {
	text, err := ask(smiTime)
	if err == nil {
		list, err := parseGPUs(text)
		if err != nil {
			return GPUs{Problem: err.Error()}
		}
		return GPUs{List: list}
	}
	if errors.Is(err, exec.ErrNotFound) {
		if files, _ := fs.Glob(fsys, "dev/nvidia*"); len(files) == 0 {
			return GPUs{}
		}
	}
	return GPUs{Problem: fmt.Sprintf("name and memory are not known: %v", err)}
}

// parseGPUs reads what nvidia-smi prints.
func parseGPUs(text string) ([]GPU, error) {
	var list []GPU
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		values := strings.Split(line, ",")
		if len(values) != 6 {
			return nil, fmt.Errorf("nvidia-smi printed %q, want name, driver, total and free memory, UUID, and MIG", line)
		}
		list = append(list, GPU{
			Name: strings.TrimSpace(values[0]), Driver: strings.TrimSpace(values[1]), Total: mebibytes(values[2]),
			Free: mebibytes(values[3]), UUID: strings.TrimSpace(values[4]),
			Parts: strings.TrimSpace(values[5]) == "Enabled",
		})
	}
	return list, nil
}

// mebibytes returns the number of bytes, which is 0 for what is not a size.
func mebibytes(number string) int64 {
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
	if err != nil {
		return 0
	}
	return int64(n) << 20
}

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
