// Command langgraph trains an agent that is written in Python with LangGraph. This program samples, trains, and serves
// the model and the tools on a loopback address; agent.py is a worker that it starts, and plays rollouts over recorded
// HTTP:
//
//	python3 -m venv venv && venv/bin/pip install -r examples/frameworks/langgraph/requirements.txt
//	go run ./examples/frameworks/langgraph -python venv/bin/python
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the agent
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/examples/frameworks"
)

//go:embed agent.py
var agent string

func main() {
	python := flag.String("python", "python3", "Python with the packages of requirements.txt")
	e, err := example(func() []string { return []string{*python, "-c", agent} })
	if err != nil {
		log.Fatal(err)
	}
	frameworks.Main(e)
}

// example is the program, with a command that starts the worker.
func example(command func() []string) (*frameworks.Example, error) {
	rollouts, err := server.NewRollouts(&server.RolloutOptions{MaxRollouts: 100_000, MaxTurns: 2 * frameworks.MaxTurns})
	if err != nil {
		return nil, err
	}
	r := &remote{}
	return &frameworks.Example{
		Name: "langgraph", Play: r.play, Rollouts: rollouts,
		Start: func(ctx context.Context, s driver.HTTPServer) error { return r.start(ctx, s, command()) },
	}, nil
}

// remote plays rollouts with an agent in another process: it opens a rollout, hands its base URL to the worker, and
// takes the trajectory that the server has recorded.
type remote struct {
	url, key string
	worker   *worker
	desks    desks
}

// start listens on a loopback address and starts the worker. Both end with ctx.
func (r *remote) start(ctx context.Context, s driver.HTTPServer, command []string) error {
	r.key = rand.Text()
	model, err := s.Handler(&art.HandlerOptions{Keys: []string{r.key}})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", model)
	mux.Handle("POST /desk/{id}/{tool}", r.desks.handler(r.key))
	listening := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = listening.Serve(listener) }() // its error is that it was closed
	context.AfterFunc(ctx, func() { _ = listening.Close() })
	r.url = "http://" + listener.Addr().String()
	r.worker, err = startWorker(ctx, command)
	return err
}

func (r *remote) play(ctx context.Context, e *frameworks.Env) (*art.Trajectory, string, error) {
	var opened struct{ ID, Base string }
	if err := r.call(ctx, "POST", "/v1/rollouts", map[string]any{"model": e.Model.Name()}, &opened); err != nil {
		return nil, "", err
	}
	r.desks.Store(opened.ID, e.Desk)
	defer r.desks.Delete(opened.ID)
	done, err := r.worker.do(ctx, &job{
		ID: opened.ID, BaseURL: r.url + opened.Base + "/v1", DeskURL: r.url + "/desk/" + opened.ID, Key: r.key,
		Task: e.Task, System: frameworks.System, MaxTurns: frameworks.MaxTurns, Settings: settings(e.Chat),
	})
	path := "/v1/rollouts/" + opened.ID
	if err == nil && done.Broken != "" {
		err = errors.New(done.Broken)
	}
	if err != nil {
		closeErr := r.call(context.WithoutCancel(ctx), "POST", path+"/close", map[string]any{"failure": err.Error()}, nil)
		return nil, "", errors.Join(err, closeErr)
	}
	t := art.NewTrajectory()
	if err := r.call(ctx, "GET", path, nil, t); err != nil {
		return nil, "", err
	}
	if err := r.call(ctx, "POST", path+"/close", map[string]any{"reward": 0}, nil); err != nil {
		return nil, "", err
	}
	if done.Error != "" {
		return t, "", errors.New(done.Error)
	}
	return t, done.Answer, nil
}

// settings are how replies are sampled, as LangChain calls it.
func settings(opts *art.ChatOptions) map[string]any {
	s := map[string]any{}
	if opts != nil && opts.Temperature != nil {
		s["temperature"] = *opts.Temperature
	}
	if opts != nil && opts.MaxTokens != nil {
		s["max_tokens"] = *opts.MaxTokens
	}
	return s
}

// call sends JSON to our own server and decodes the answer. into may be nil.
func (r *remote) call(ctx context.Context, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// maxArgument is the most bytes of an argument of a tool.
const maxArgument = 1 << 16

// desks serves the desks of rollouts to the worker: POST /desk/ROLLOUT/TOOL with the argument as the body.
type desks struct{ sync.Map }

func (d *desks) handler(key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		desk, ok := d.Load(r.PathValue("id"))
		if r.Header.Get("Authorization") != "Bearer "+key || !ok {
			http.Error(w, "there is no such desk", http.StatusNotFound)
			return
		}
		argument, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxArgument))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		text, err := desk.(*frameworks.Desk).Call(r.PathValue("tool"), string(argument))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, text) // the worker is gone: its run fails
	})
}

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
