package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/grpo/dataset"
)

// scenario is a line of a file of tasks: a conversation to reply to, and the answer that is wanted, if there is one.
type scenario struct {
	Messages []art.Message `json:"messages"`
	Tools    []art.Tool    `json:"tools,omitempty"`
	Answer   *string       `json:"answer,omitempty"`
}

// scenariosHelp is what the help of verbs says about FILE.
const scenariosHelp = `FILE has one JSON object a line: {"messages": [...], "tools": [...], "answer": "..."}. tools and
answer may be absent. A last message of the assistant is the answer if there is no other.`

// readScenarios reads a file of scenarios.
func readScenarios(path string) ([]scenario, error) {
	var list []scenario
	for record, err := range dataset.Stream[scenario]([]string{path}, nil) {
		if err != nil {
			return nil, err
		}
		list = append(list, record.Value)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no scenarios", path)
	}
	return list, nil
}

// UnmarshalJSON reads a line.
func (s *scenario) UnmarshalJSON(line []byte) error {
	type plain scenario
	if err := json.Unmarshal(line, (*plain)(s)); err != nil {
		return err
	}
	if last := len(s.Messages) - 1; last >= 0 && s.Messages[last].Role == art.RoleAssistant {
		if s.Answer == nil {
			s.Answer = new(s.Messages[last].Content)
		}
		s.Messages = slices.Clip(s.Messages[:last]) // a reply that is appended must not take the place of the answer
	}
	if len(s.Messages) == 0 {
		return errors.New("there are no messages to reply to")
	}
	return nil
}

// question is the last message.
func (s *scenario) question() string { return s.Messages[len(s.Messages)-1].Content }

// wanted is the answer, if there is one.
func (s *scenario) wanted() string {
	if s.Answer == nil {
		return "-"
	}
	return *s.Answer
}

// player answers scenarios with a model or a run, for verbs. Nothing is stored of it.
type player struct {
	backend *local.Backend
	model   *art.Model
	dir     string
}

// playerOptions say how to answer.
type playerOptions struct {
	maxTokens   int
	temperature float64
	seed        uint64
	context     int
	toolFormat  string
	sampled     bool // replies have samples
}

// openPlayer loads what MODEL names. progress gets the bar of a download or a training.
func openPlayer(ctx context.Context, name string, o playerOptions, progress io.Writer) (p *player, err error) {
	s, err := find(name)
	if err != nil {
		return nil, err
	}
	p = &player{}
	if p.dir, err = os.MkdirTemp("", "art-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.backend, err = local.Open(ctx, &local.Options{Dir: p.dir, Progress: progress, Context: o.context}); err != nil {
		return p, err
	}
	opts := &art.ModelOptions{Base: s.path, Seed: o.seed, Adapter: s.adapter, Frozen: s.adapter == "" && !o.sampled,
		ToolFormat: o.toolFormat}
	if o.maxTokens > 0 {
		opts.Chat.MaxTokens = &o.maxTokens
	}
	opts.Chat.Temperature = &o.temperature
	p.model = art.NewModel("model", opts)
	return p, p.model.Register(ctx, p.backend)
}

// close releases the model.
func (p *player) close() error {
	var err error
	if p.backend != nil {
		err = p.backend.Close()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// play answers each scenario tries times.
func (p *player) play(ctx context.Context, list []scenario, tries int, events *art.Events) ([]*art.TrajectoryGroup,
	error) {
	return art.GatherGroups(ctx, list, func(ctx context.Context, s scenario) (*art.Trajectory, error) {
		t := art.NewTrajectory(s.Messages...)
		t.Tools = s.Tools
		_, err := p.model.Chat(ctx, t, nil)
		return t, err
	}, &art.GatherOptions{GroupSize: tries, Concurrency: 32, MaxFailureFraction: 1, Events: events})
}

// lastReply is what the model said, with its calls.
func lastReply(t *art.Trajectory) string {
	m := t.Messages[len(t.Messages)-1]
	text := m.Content
	for _, call := range m.ToolCalls {
		text += fmt.Sprintf("%s(%s)", call.Name, call.Arguments)
	}
	return text
}
