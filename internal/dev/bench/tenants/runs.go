package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/goart-dev/art"
)

// outcome is what several runs at once came to.
type outcome struct {
	took   time.Duration
	rates  []float64 // steps a second of each run, until its own end
	memory int64     // the most that was resident, of all processes that hold weights
}

// rate is steps a second of all runs together.
func (o outcome) rate() float64 { return float64(len(o.rates)**steps) / o.took.Seconds() }

func (o outcome) String() string {
	return fmt.Sprintf("%.3f steps/s, %.1f s, %.2f GB", o.rate(), o.took.Seconds(), float64(o.memory)/1e9)
}

// trainClients trains n runs at once through one server. A first step of each warms up and does not count.
func trainClients(ctx context.Context, n int) (o outcome, err error) {
	s, err := startServer(ctx, fmt.Sprint("clients-", n))
	if err != nil {
		return o, err
	}
	defer s.Close()
	models := make([]*art.Model, n)
	for i := range models {
		m, c, err := connect(ctx, s, fmt.Sprintf("client-%d-of-%d", i, n))
		if err != nil {
			return o, err
		}
		defer c.Close()
		if models[i] = m; i == 0 { // compiles
			if _, err := step(ctx, m, -1, nil); err != nil {
				return o, err
			}
		}
	}
	o.rates = make([]float64, n)
	errs := make([]error, n)
	start := time.Now()
	var all sync.WaitGroup
	for i, m := range models {
		all.Go(func() {
			for k := 0; k < *steps && errs[i] == nil; k++ {
				_, errs[i] = step(ctx, m, k, nil)
			}
			o.rates[i] = float64(*steps) / time.Since(start).Seconds()
		})
	}
	all.Wait()
	o.took = time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return o, err
	}
	o.memory, err = peakMemory(s.PID)
	return o, err
}

// alone trains one run, in this process, and prints nothing. A line on standard input lets it begin.
func alone(ctx context.Context) error {
	b, err := openLocal(ctx, "alone")
	if err != nil {
		return err
	}
	defer b.Close()
	m, err := register(ctx, b, "alone")
	if err != nil {
		return err
	}
	if _, err := step(ctx, m, -1, nil); err != nil { // compiles
		return err
	}
	fmt.Println("ready")
	if _, err := fmt.Scanln(new(string)); err != nil {
		return err
	}
	for k := range *steps {
		if _, err := step(ctx, m, k, nil); err != nil {
			return err
		}
	}
	memory, err := peakMemory(os.Getpid())
	fmt.Println(memory)
	return err
}

// process trains one run alone.
type process struct {
	*exec.Cmd
	in  io.Writer
	out io.Reader
}

// startProcess starts a process, and waits until it has compiled what it needs.
func startProcess(ctx context.Context, program string, i int) (p process, err error) {
	p.Cmd = exec.CommandContext(ctx, program, append(childFlags(fmt.Sprint("process-", i)), "-alone")...)
	p.Stderr = os.Stderr
	if p.in, err = p.StdinPipe(); err != nil {
		return p, err
	}
	if p.out, err = p.StdoutPipe(); err != nil {
		return p, err
	}
	if err = p.Start(); err != nil {
		return p, err
	}
	if _, err := fmt.Fscanln(p.out, new(string)); err != nil {
		return p, errors.Join(err, p.Wait())
	}
	return p, nil
}

// train lets a process that is ready begin, and returns the memory that it took.
func (p process) train() (memory int64, err error) {
	if _, err = fmt.Fprintln(p.in, "go"); err == nil {
		_, err = fmt.Fscanln(p.out, &memory)
	}
	return memory, errors.Join(err, p.Wait())
}

// trainProcesses trains n runs at once, in a process each.
func trainProcesses(ctx context.Context, n int) (o outcome, err error) {
	program, err := os.Executable()
	if err != nil {
		return o, err
	}
	ctx, cancel := context.WithCancel(ctx) // ends those that are ready when one fails
	defer cancel()
	list := make([]process, n)
	for i := range list {
		if list[i], err = startProcess(ctx, program, i); err != nil {
			return o, fmt.Errorf("process %d: %w", i, err)
		}
	}
	o.rates = make([]float64, n)
	memory, errs := make([]int64, n), make([]error, n)
	start := time.Now()
	var all sync.WaitGroup
	for i, p := range list {
		all.Go(func() {
			memory[i], errs[i] = p.train()
			o.rates[i] = float64(*steps) / time.Since(start).Seconds()
		})
	}
	all.Wait()
	o.took = time.Since(start)
	for _, bytes := range memory {
		o.memory += bytes
	}
	return o, errors.Join(errs...)
}
