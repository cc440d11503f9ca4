package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// job is one run of the agent, as the worker reads it.
type job struct {
	ID       string         `json:"id"`
	BaseURL  string         `json:"base_url"`
	DeskURL  string         `json:"desk_url"`
	Key      string         `json:"key"`
	Task     string         `json:"task"`
	System   string         `json:"system"`
	MaxTurns int            `json:"max_turns"`
	Settings map[string]any `json:"settings"`
}

// outcome is what the worker says of a job: an answer, or an error of the agent, or why its run says nothing.
type outcome struct {
	ID     string `json:"id"`
	Answer string `json:"answer"`
	Error  string `json:"error"`
	Broken string `json:"broken"`
}

type worker struct {
	mu      sync.Mutex
	jobs    *json.Encoder
	waiting map[string]chan outcome
	ended   chan struct{} // closed when the process has ended, and err says why
	err     error
}

// startWorker starts a process that ends with ctx. What it writes as errors is ours.
func startWorker(ctx context.Context, command []string) (*worker, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	w := &worker{jobs: json.NewEncoder(in), waiting: map[string]chan outcome{}, ended: make(chan struct{})}
	go func() {
		err := w.read(out)
		w.err = fmt.Errorf("the worker has ended: %w", errors.Join(err, c.Wait()))
		close(w.ended)
	}()
	return w, nil
}

// read hands outcomes to those who wait.
func (w *worker) read(out io.Reader) error {
	for d := json.NewDecoder(out); ; {
		var o outcome
		if err := d.Decode(&o); err != nil {
			return err
		}
		w.mu.Lock()
		if done := w.waiting[o.ID]; done != nil {
			done <- o
			delete(w.waiting, o.ID)
		}
		w.mu.Unlock()
	}
}

func (w *worker) do(ctx context.Context, j *job) (outcome, error) {
	done := make(chan outcome, 1)
	w.mu.Lock()
	w.waiting[j.ID] = done
	err := w.jobs.Encode(j)
	w.mu.Unlock()
	if err != nil {
		return outcome{}, err
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting, j.ID)
	}()
	select {
	case o := <-done:
		return o, nil
	case <-w.ended:
		return outcome{}, w.err
	case <-ctx.Done():
		return outcome{}, context.Cause(ctx)
	}
}
