package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/examples/agents/mcp/synthetic"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/ruler"
)

// models opens the backends: first the one of this process, in trained, and others that are asked for, once each.
type models struct {
	*settings
	backend *local.Backend
	base    *art.Model
	hosted  map[string]*art.Model
	closers []func() error
}

func (m *models) trained(ctx context.Context) (*art.Model, error) {
	b, err := local.Open(ctx, &local.Options{Dir: m.dir, Slots: 64, Context: m.context})
	if err != nil {
		return nil, err
	}
	m.backend, m.closers = b, append(m.closers, b.Close)
	model := art.NewModel(m.name(), &art.ModelOptions{
		Project: "mcprl", Base: m.settings.base, Seed: m.seed, LoRA: art.LoRA{Rank: 32},
		ToolFormat: m.toolFormat, Retention: &art.Retention{Newest: 1, Best: "val/score"},
	})
	return model, model.Register(ctx, b)
}

// name is that of the run: of the server, the model, the judge and the seed.
func (m *models) name() string {
	base := strings.TrimSuffix(filepath.Base(m.settings.base), ".gguf")
	name := fmt.Sprintf("%s-%s-%d", m.server, base, m.seed)
	if m.judge != "" {
		name += "-" + m.judge
	}
	return folderName(name)
}

// folderName replaces what a run must not be called.
func folderName(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:@ "'`, r) {
			return '-'
		}
		return r
	}, s), "-. ")
}

// find returns the model of a flag: base, or MODEL@URL.
func (m *models) find(ctx context.Context, flag, value string) (*art.Model, error) {
	name, url, hosted := strings.Cut(value, "@")
	switch {
	case value == "base":
		return m.untrained(ctx)
	case !hosted:
		return nil, fmt.Errorf("-%s is %q, want base or MODEL@URL", flag, value)
	case m.hosted[value] != nil:
		return m.hosted[value], nil
	}
	b, err := openai.Open(ctx, &openai.Options{BaseURL: url, Dir: m.dir})
	if err != nil {
		return nil, err
	}
	m.closers = append(m.closers, b.Close)
	model := art.NewModel("hosted-"+folderName(name), &art.ModelOptions{Project: "mcprl", Base: name, Frozen: true})
	if m.hosted == nil {
		m.hosted = map[string]*art.Model{}
	}
	m.hosted[value] = model
	return model, model.Register(ctx, b)
}

func (m *models) untrained(ctx context.Context) (*art.Model, error) {
	if m.base != nil {
		return m.base, nil
	}
	m.base = art.NewModel("untrained-"+m.name(), &art.ModelOptions{
		Project: "mcprl", Base: m.settings.base, Frozen: true, Seed: m.seed, ToolFormat: m.toolFormat,
	})
	return m.base, m.base.Register(ctx, m.backend)
}

func (m *models) close() error {
	var errs []error
	for _, f := range m.closers {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// tasks returns the scenarios: those of the domain, or those that a model wrote, now or in an earlier process.
func (s *settings) tasks(ctx context.Context, m *models, about *mcp.Description, domain *synthetic.Domain,
	logger *slog.Logger,
) (train, val []mcp.Scenario, err error) {
	if domain != nil {
		train, val = domain.Scenarios(s.seed, s.level)
		return train, val, nil
	}
	dir := filepath.Join(s.dir, "mcprl", "scenarios", folderName(s.server))
	if train, val, err = mcp.Load(dir, about); err == nil || !errors.Is(err, os.ErrNotExist) {
		return train, val, err
	}
	writer, err := m.find(ctx, "generator", s.generator)
	if err != nil {
		return nil, nil, err
	}
	list, _, err := mcp.Generate(ctx, about, &mcp.GenerateOptions{Model: writer, Want: s.scenarios, Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	train, val = mcp.Split(list, s.seed)
	fmt.Printf("%s to train on and %d to validate with, written by %s: %s\n", quantity.Of(len(train), "scenario"),
		len(val), writer.Name(), dir)
	return train, val, mcp.Store(dir, about, train, val)
}

// judges sets who gives the rewards and whom validations compare with.
func (s *settings) judges(
	ctx context.Context, t *agents.Training[mcp.Scenario], m *models, logger *slog.Logger,
) (err error) {
	opts := &ruler.Options{OnFailure: ruler.Drop, Logger: logger, Cache: filepath.Join(s.dir, "mcprl", "judge")}
	if s.judge == "base" {
		opts.Context = s.context
	}
	var judge *ruler.Ruler
	switch s.judge {
	case "":
	case "noisy":
		if !t.Checked {
			return errors.New("-judge noisy needs a server with a checker, orders or calendar")
		}
		opts.Judges, opts.Chunk, opts.Cache = []ruler.Judge{synthetic.Noisy(0.15)}, 64, ""
		judge = ruler.New(nil, opts)
	default:
		model, err := m.find(ctx, "judge", s.judge)
		if err != nil {
			return err
		}
		judge = ruler.New(model, opts)
	}
	if judge != nil {
		t.After = judge.After
	}
	control := s.control
	if control == "" && judge != nil {
		control = "base"
	}
	if control == "" {
		return nil
	}
	if judge == nil {
		return errors.New("-control needs a -judge")
	}
	t.Referee = judge
	t.Control, err = m.find(ctx, "control", control)
	return err
}

// learnFrom has the teacher of -teacher show how, in the first step of a run: see [agents.Training.Distill]. Where
// there is no checker, rollouts are kept that were completed and in which no call failed.
func (s *settings) learnFrom(ctx context.Context, t *agents.Training[mcp.Scenario], m *models) error {
	if s.teacher == "" || t.Model.Step() > 0 {
		return nil
	}
	teacher, err := m.find(ctx, "teacher", s.teacher)
	if err != nil {
		return err
	}
	keep := func(x *art.Trajectory) bool { return x.Metrics["completed"] == 1 && x.Metrics["tool_errors"] == 0 }
	if t.Checked {
		keep = nil
	}
	d, err := t.Distill(ctx, teacher, s.demos, keep, &art.SFTConfig{
		LearningRate: s.rate, BatchSize: 16, Epochs: 3, Seed: s.seed,
	})
	if err != nil {
		return err
	}
	fmt.Printf("teacher %s: %d of %d rollouts are shown, %d failed, %d were left out\n", teacher.Name(), d.Kept,
		d.Rollouts, d.Failures, len(d.Skipped))
	return nil
}
