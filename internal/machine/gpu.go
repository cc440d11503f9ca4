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
