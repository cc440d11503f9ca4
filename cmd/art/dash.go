package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/rundir"
)

func init() {
	verbs["runs dash"] = verb{
		summary: "a web page that shows runs while they are trained",
		args:    "[DIR]",
		runs:    true,
		text: `
Serves a page about the runs in DIR, or --dir: metrics, trajectories side by side, tokens as a heat
map. It follows what other processes store there, and changes nothing
but the stars of --stars. docs/dash.md describes the page.

The address that is printed lets one browser in, once, with a token that becomes a cookie. --key
sets a key for others; the page asks them for it.`,
		define: func(flags *flag.FlagSet) action {
			var d dasher
			flags.StringVar(&d.addr, "addr", "127.0.0.1:8090", "`address` to listen on; port 0 is any that is free")
			flags.StringVar(&d.key, "key", os.Getenv(keyVariable), "`key` that the page asks for; default: $"+keyVariable)
			flags.StringVar(&d.hosts, "hosts", "", "`names` of this server beside localhost, with commas; * is any")
			flags.BoolVar(&d.stars, "stars", false, "let people star trajectories, for art sft")
			return d.run
		},
	}
}

// dasher is the verb runs dash with its flags.
type dasher struct {
	addr, key, hosts string
	stars            bool
}

func (d *dasher) run(args []string, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return d.serve(ctx, args, stdout, stderr)
}

// serve serves the page until ctx ends.
func (d *dasher) serve(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	dir := runsRoot()
	switch {
	case len(args) == 0:
	case len(args) == 1 && runsDir != "":
		return badUsage("DIR and --dir both say where the runs are: give one")
	case len(args) == 1:
		dir = args[0]
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("%w; name a folder of runs", err)
		}
	default:
		return badUsage("want at most one DIR")
	}
	var scorers scorers
	defer func() { err = errors.Join(err, scorers.close()) }()
	opts := &dash.Options{
		Dir: dir, Tokens: cachedTokens(), Stars: d.stars, Logprobs: scorers.logprobs,
		Access: &art.HandlerOptions{Hosts: splitList(d.hosts)}, Logger: warnings(stderr),
	}
	if d.key != "" {
		opts.Access.Keys = []string{d.key}
	}
	page, err := dash.Start(d.addr, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Close()) }()
	if err := write(stdout, "runs of "+dir+" at "+page.Link()+"\n"); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- page.Wait() }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// cachedTokens returns a function that has the bytes of the tokens of a run, and keeps its tokenizer.
func cachedTokens() func(*rundir.Run) (func(int32) []byte, error) {
	var mu sync.Mutex
	known := map[string]func(int32) []byte{}
	return func(r *rundir.Run) (func(int32) []byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if f := known[r.Dir()]; f != nil {
			return f, nil
		}
		tok, err := openTokenizer(r.Dir())
		if err != nil {
			return nil, err
		}
		known[r.Dir()] = tok.TokenBytes
		return tok.TokenBytes, nil
	}
}

// scorers compute logprobs under stored steps: each is a model that was loaded when it was first asked.
type scorers struct {
	mu      sync.Mutex
	backend *local.Backend
	done    func() error // closes it
	models  map[string]*art.Model
}

// logprobs returns the logprob of each of ids but the first under a step of a run.
func (s *scorers) logprobs(ctx context.Context, r *rundir.Run, step int, ids []int32) ([]float32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.model(ctx, r, step)
	if err != nil {
		return nil, err
	}
	logprobs, _, err := s.backend.Logprobs(ctx, m, ids)
	return logprobs, err
}

// model returns the model of a step.
func (s *scorers) model(ctx context.Context, r *rundir.Run, step int) (*art.Model, error) {
	name := r.Dir() + "@" + strconv.Itoa(step)
	if m := s.models[name]; m != nil {
		return m, nil
	}
	checkpoint, err := r.Checkpoint(step)
	if err != nil {
		return nil, err
	}
	if s.backend == nil {
		o := local.Options{Progress: io.Discard, Slots: 1}
		if s.backend, s.done, err = openScratch(ctx, o); err != nil {
			return nil, err
		}
		s.models = map[string]*art.Model{}
	}
	stored, err := find(checkpoint)
	if err != nil {
		return nil, err
	}
	m := art.NewModel(fmt.Sprintf("%s-%d-%d", filepath.Base(r.Dir()), step, len(s.models)),
		&art.ModelOptions{Base: stored.path, Adapter: stored.adapter, Frozen: stored.adapter == ""})
	if err := m.Register(ctx, s.backend); err != nil {
		return nil, err
	}
	s.models[name] = m
	return m, nil
}

// close releases what was loaded.
func (s *scorers) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backend == nil {
		return nil
	}
	return s.done()
}
