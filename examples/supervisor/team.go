package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/goart-dev/art"
)

// question is what the team is asked, who should answer, and what.
type question struct{ text, worker, answer string }

// prompts of the workers by name.
var prompts = map[string]string{"calc": "Reply with a number.", "copy": "Reply with the word."}

// choices are the workers by what the supervisor replies: words that the built-in model knows.
var choices = map[string]string{"yes": "calc", "no": "copy"}

// questions are sums and words.
func questions() []question {
	var list []question
	for i, word := range strings.Fields("red blue cat dog tree sun moon car book fish bird milk") {
		a, b := i%6+1, i/2+1
		list = append(list,
			question{fmt.Sprintf("What is %d + %d?", a, b), "calc", strconv.Itoa(a + b)},
			question{"Say " + word + ".", "copy", word})
	}
	return list
}

// delegate is the system message of the supervisor.
const delegate = "Is it a sum? Reply yes or no."

// answer lets the supervisor name a worker, and that one answer. It returns the supervisor's trajectory, and puts the
// worker's into parts. A reply that is no choice ends it.
func (t *team) answer(ctx context.Context, q question, p *parts, opts *art.ChatOptions) (*art.Trajectory, error) {
	s := art.NewTrajectory(art.System(delegate), art.User(q.text+" yes or no"))
	choice, err := t.supervisor.Chat(ctx, s, opts)
	if err != nil {
		return nil, err
	}
	name := choices[strings.TrimSpace(choice.Content)]
	s.Metrics = map[string]float64{"right": 0, "delegated": one(name == q.worker), "known": one(name != "")}
	s.Reward = 0.1 * s.Metrics["known"]
	if name == "" {
		return s, nil
	}
	w := art.NewTrajectory(art.System(prompts[name]), art.User(q.text))
	reply, err := t.workers.Chat(ctx, w, opts)
	if err != nil {
		return nil, err
	}
	if strings.Trim(reply.Content, " .") == q.answer {
		s.Reward, s.Metrics["right"], w.Reward = 1, 1, 1
	}
	w.Metadata["worker"] = name
	p.put(s, w)
	return s, nil
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// parts are the trajectories of workers by that of their supervisor. It is safe for concurrent use.
type parts struct {
	mu       sync.Mutex
	ofWorker map[*art.Trajectory]*art.Trajectory
}

func (p *parts) put(supervisor, worker *art.Trajectory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ofWorker == nil {
		p.ofWorker = map[*art.Trajectory]*art.Trajectory{}
	}
	p.ofWorker[supervisor] = worker
}

// workers returns the groups of the workers. Only answers of one worker to one question can be compared: another one
// had another prompt. A group of the supervisor becomes up to two.
func (p *parts) workers(groups []*art.TrajectoryGroup) []*art.TrajectoryGroup {
	var out []*art.TrajectoryGroup
	for _, g := range groups {
		byName := map[string]*art.TrajectoryGroup{}
		for _, s := range g.Trajectories {
			w := p.ofWorker[s]
			if w == nil {
				continue
			}
			name := w.Metadata["worker"].(string)
			if byName[name] == nil {
				byName[name] = &art.TrajectoryGroup{}
				out = append(out, byName[name])
			}
			byName[name].Trajectories = append(byName[name].Trajectories, w)
		}
	}
	if len(out) == 0 { // nobody was asked: a step that learns nothing
		out = append(out, &art.TrajectoryGroup{})
	}
	return out
}
