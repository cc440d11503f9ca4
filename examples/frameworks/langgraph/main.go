// Command langgraph trains an agent that is written in Python with LangGraph. This program samples, trains, and serves
// the model and the tools on a loopback address; agent.py is a worker that it starts, and plays rollouts over recorded
// HTTP:
//
//	python3 -m venv venv && venv/bin/pip install -r examples/frameworks/langgraph/requirements.txt
//	go run ./examples/frameworks/langgraph -python venv/bin/python
package main

import (
	"context"
	_ "embed" // the agent
	"flag"
	"log"

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
