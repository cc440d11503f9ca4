// Command service is a service whose agent learns while it serves: POST /ask runs the agent, POST /train runs it many
// times and makes the next step, and /v1/ serves the model to OpenAI clients.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// questions are the training scenarios. worth is the reward of an answer, 0 for unknown ones.
var questions = []string{"yes or no", "maybe, yes or no?", "Answer with yes, no or maybe.", "no, maybe or yes"}
var worth = map[string]float64{"yes": 0.5, "no": 0.75, "maybe": 1}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	dir := flag.String("dir", local.DefaultDir, "folder of the runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		err = serve(ctx, listener, *dir, func(p art.TrainProgress) {
			log.Printf("training: update %d of %d", p.Done, p.Total)
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}

// serve answers until ctx ends, and then gives running requests a minute to finish. It resumes the run in dir.
func serve(ctx context.Context, listener net.Listener, dir string, progress func(art.TrainProgress)) (err error) {
	defer listener.Close()
	backend, err := local.Open(ctx, &local.Options{Dir: dir, Context: 64})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	model := art.NewModel("agent", &art.ModelOptions{Chat: art.ChatOptions{MaxTokens: new(4)}})
	s := &service{progress: progress, model: model}
	if err := s.model.Register(ctx, backend); err != nil {
		return err
	}
	models, err := backend.Handler(nil) // for programs on this machine
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", models)
	mux.Handle("POST /ask", handler(s.ask))
	mux.Handle("POST /train", handler(s.train))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), server.Close())
}

// service is an agent and its model.
type service struct {
	model    *art.Model
	progress func(art.TrainProgress)
	training sync.Mutex // steps are made one at a time
}

// attempt runs the agent.
func (s *service) attempt(ctx context.Context, question string) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.User(question))
	reply, err := s.model.Chat(ctx, t, nil)
	if err == nil {
		t.Reward = worth[reply.Content]
	}
	return t, err
}

// ask runs the agent once, for a client.
func (s *service) ask(r *http.Request) (any, error) {
	t, err := s.attempt(r.Context(), r.FormValue("question"))
	if err != nil {
		return nil, err
	}
	reply := t.Messages[len(t.Messages)-1]
	return map[string]any{"answer": reply.Content, "model": fmt.Sprintf("%s@%d", s.model.Name(), reply.Sample.Step)}, nil
}

// train runs the agent a few times on each question, and makes the next step.
func (s *service) train(r *http.Request) (any, error) {
	s.training.Lock()
	defer s.training.Unlock()
	groups, err := art.GatherGroups(r.Context(), questions, s.attempt, nil)
	if err != nil {
		return nil, err
	}
	return s.model.Train(r.Context(), groups, &art.TrainConfig{LearningRate: 1e-3, Progress: s.progress})
}

// handler answers in JSON, or with an error.
func handler(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reply, err := f(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply) // fails only when the client has gone
	}
}
