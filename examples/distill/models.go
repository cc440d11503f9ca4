package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/examples/agents"
)

// teacherTemperature is low, since a small model that samples is wrong much more often than one that takes the
// likeliest token; replies still differ.
const teacherTemperature = 0.3

type models struct {
	backend                *local.Backend
	hosted                 *hosted.Backend // of the teacher; nil when it is the base model with the prompt
	student, base, teacher *art.Model
}

func (s *settings) open(ctx context.Context, out io.Writer) (m *models, err error) {
	if s.base == "" {
		return nil, errors.New("-model is missing: take a small model that follows examples, such as SmolLM2-135M-Instruct")
	}
	fmt.Fprintln(out, "loading", s.base)
	m = &models{}
	if m.backend, err = local.Open(ctx, &local.Options{Dir: s.dir, Slots: 32, Context: 512}); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("student-%s-%d", strings.TrimSuffix(filepath.Base(s.base), ".gguf"), s.seed)
	options := art.ModelOptions{Project: "distill", Base: s.base, Seed: s.seed}
	frozen := options
	frozen.Frozen = true
	options.Retention = &art.Retention{Newest: 1, Best: "val/score"}
	m.student, m.base = art.NewModel(name, &options), art.NewModel(name+"-base", &frozen)
	err = errors.Join(m.student.Register(ctx, m.backend), m.base.Register(ctx, m.backend), s.openTeacher(ctx, m, frozen))
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// openTeacher registers the base model once more, under a name of the teacher, or a model behind an API.
func (s *settings) openTeacher(ctx context.Context, m *models, frozen art.ModelOptions) (err error) {
	if s.teacher == "" {
		m.teacher = art.NewModel(m.base.Name()+"-prompted", &frozen)
		return m.teacher.Register(ctx, m.backend)
	}
	name, url, ok := strings.Cut(s.teacher, "@")
	if !ok {
		return fmt.Errorf("-teacher is %q, want MODEL@URL", s.teacher)
	}
	if m.hosted, err = openai.Open(ctx, &openai.Options{BaseURL: url, Dir: s.dir}); err != nil {
		return err
	}
	m.teacher = art.NewModel("teacher", &art.ModelOptions{Project: "distill", Base: name, Frozen: true})
	return m.teacher.Register(ctx, m.hosted)
}

func (m *models) close() error {
	err := m.backend.Close()
	if m.hosted != nil {
		err = errors.Join(err, m.hosted.Close())
	}
	return err
}

// ask is the agent. The teacher has its prompt before the request; what becomes of it is the trajectory of a student
// that wrote the same reply without one.
func (m *models) ask(model *art.Model, opts *art.ChatOptions) func(context.Context, trip) (*art.Trajectory, error) {
	return func(ctx context.Context, s trip) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(s.request))
		t.Metadata[agents.ScenarioKey] = s.request
		if model == m.teacher {
			sure := *opts
			if sure.Temperature == nil {
				sure.Temperature = new(teacherTemperature)
			}
			prompted := art.NewTrajectory(append(slices.Clone(shown), art.User(s.request))...)
			reply, err := model.Chat(ctx, prompted, &sure)
			if err != nil {
				return nil, err
			}
			t.Add(art.Assistant(reply.Content))
		} else if _, err := model.Chat(ctx, t, opts); err != nil {
			return nil, err
		}
		reward, solved := s.grade(t.Messages[len(t.Messages)-1].Content)
		t.Reward, t.Metrics["solved"] = reward, 0
		if solved {
			t.Metrics["solved"] = 1
		}
		return t, nil
	}
}
