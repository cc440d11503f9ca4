package main

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

// gpus are those of NVIDIA, as nvidia-smi tells of them. A PJRT plug-in knows as much of its devices, but go-xla does
// not pass on their kind and memory.
type gpus struct {
	GPUs    []gpu  `json:"gpus,omitempty"`
	Problem string `json:"gpus_problem,omitempty"` // why nothing is known of one that there may be
}

type gpu struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Total  int64  `json:"memory_total_bytes,omitempty"` // 0 when it has none of its own
	Free   int64  `json:"memory_free_bytes,omitempty"`
}

// smiTime is how long nvidia-smi may take. A driver that hangs must not make the doctor wait.
const smiTime = 20 * time.Second

// smi returns a line of name, version of the driver, and MiB of memory, all and free, for each GPU. It gives up after a
// time.
func smi(after time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	c := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,driver_version,memory.total,memory.free",
		"--format=csv,noheader,nounits")
	c.WaitDelay = time.Second // not for a program that a script began, which lives on and holds the output
	out, err := c.Output()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = fmt.Errorf("nvidia-smi: no answer in %v", after)
	case len(out) > 0:
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out))) // it explains itself on standard output
	}
	return string(out), err
}

// inspectGPUs asks for the GPUs. fsys is the file system of this machine.
func inspectGPUs(fsys fs.FS, ask func(after time.Duration) (string, error)) gpus {
	text, err := ask(smiTime)
	if err == nil {
		list, err := parseGPUs(text)
		if err != nil {
			return gpus{Problem: err.Error()}
		}
		return gpus{GPUs: list}
	}
	if errors.Is(err, exec.ErrNotFound) {
		if files, _ := fs.Glob(fsys, "dev/nvidia*"); len(files) == 0 {
			return gpus{}
		}
	}
	return gpus{Problem: fmt.Sprintf("name and memory are not known: %v", err)}
}

// parseGPUs reads what nvidia-smi prints.
func parseGPUs(text string) ([]gpu, error) {
	var list []gpu
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		values := strings.Split(line, ",")
		if len(values) != 4 {
			return nil, fmt.Errorf("nvidia-smi printed %q, want name, driver, total and free memory", line)
		}
		list = append(list, gpu{
			Name: strings.TrimSpace(values[0]), Driver: strings.TrimSpace(values[1]), Total: mebibytes(values[2]),
			Free: mebibytes(values[3]),
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

func (g gpu) String() string {
	memory := "memory is not told"
	if g.Total > 0 {
		memory = fmt.Sprintf("%s, %s free", bytesText(g.Total), bytesText(g.Free))
	}
	return fmt.Sprintf("%s, %s, driver %s", g.Name, memory, g.Driver)
}

// lines are the report for people.
func (g gpus) lines() []string {
	if g.Problem != "" {
		return []string{g.Problem}
	}
	var lines []string
	for _, one := range g.GPUs {
		lines = append(lines, one.String())
	}
	return lines
}
