package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// trip is a scenario: a request and what it asks for.
type trip struct {
	request, from, to, month string
}

// shown is the teacher's prompt: what to do, and how it is done. The student never sees it.
var shown = []art.Message{
	art.System("Turn each request for a trip into JSON with the fields from, to and month."),
	art.User("I want to travel from Lisbon to Vienna in March."),
	art.Assistant(`{"from":"Lisbon","to":"Vienna","month":"March"}`),
	art.User("We go to Dublin in December. We live in Prague."),
	art.Assistant(`{"from":"Prague","to":"Dublin","month":"December"}`),
	art.User("In June, get me to Cairo; I start in Tunis."),
	art.Assistant(`{"from":"Tunis","to":"Cairo","month":"June"}`),
}

// What requests are made of.
var (
	cities = []string{
		"Oslo", "Rome", "Madrid", "Berlin", "Paris", "London", "Athens", "Warsaw", "Helsinki", "Brussels", "Zurich", "Munich",
		"Milan", "Naples", "Seville", "Porto", "Lyon", "Geneva", "Hamburg", "Boston", "Chicago", "Toronto", "Tokyo", "Seoul",
		"Sydney", "Delhi", "Lima", "Havana", "Nairobi", "Moscow", "Budapest", "Istanbul",
	}
	months = []string{
		"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
		"December",
	}
	wordings = []string{
		"I want to travel from {from} to {to} in {month}.",
		"Please book a trip to {to} from {from}, some time in {month}.",
		"In {month} we move from {from} to {to}.",
		"We go to {to} in {month}. We live in {from}.",
		"In {month}, get me to {to}; I start in {from}.",
		"My sister lives in {from} and will visit me in {to} in {month}.",
		"Is there a train from {from}? I have to be in {to} in {month}.",
		"{from} to {to}, {month}, one person.",
	}
)

// trips returns n requests, all different: to train on, or held out. Pairs of cities of which one kind asks are never
// in the other.
func trips(n int, held bool, seed uint64) []trip {
	stream := uint64(0)
	if held {
		stream = 1
	}
	rng, seen := rand.New(rand.NewPCG(seed, stream)), map[string]bool{}
	list := make([]trip, 0, n)
	for len(list) < n {
		from, to := rng.IntN(len(cities)), rng.IntN(len(cities))
		if from == to || ((from+to)%4 == 0) != held {
			continue
		}
		t := trip{from: cities[from], to: cities[to], month: months[rng.IntN(len(months))]}
		t.request = strings.NewReplacer("{from}", t.from, "{to}", t.to, "{month}", t.month).Replace(
			wordings[rng.IntN(len(wordings))])
		if !seen[t.request] {
			seen[t.request] = true
			list = append(list, t)
		}
	}
	return list
}

func (t trip) reply() string {
	return fmt.Sprintf(`{"from":%q,"to":%q,"month":%q}`, t.from, t.to, t.month)
}

// grade checks a reply: solved when it is one JSON object with the three fields, all right. The reward counts the
// fields that are right, so that a reply with two of them is better than one with none.
func (t trip) grade(reply string) (reward float64, solved bool) {
	var a struct{ From, To, Month *string } // nil where it is missing or null
	d := json.NewDecoder(strings.NewReader(reply))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil || strings.TrimSpace(reply[d.InputOffset():]) != "" {
		return 0, false
	}
	reward = 0.1 // for the form
	for _, field := range []struct {
		got  *string
		want string
	}{{a.From, t.from}, {a.To, t.to}, {a.Month, t.month}} {
		if field.got != nil && *field.got == field.want {
			reward += 0.3
		}
	}
	return reward, reward > 0.99
}
