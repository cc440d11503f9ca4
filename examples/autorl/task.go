package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/auto"
)

// task is one that a rule can check, and what the stand-ins know of it.
type task struct {
	name, text string
	// system and rubric are what the writer writes for it.
	system, rubric string
	// examples are shown before each input.
	examples []auto.Example
	// tokens is enough for a reply.
	tokens int
	// draw makes an input.
	draw func(rng *rand.Rand) string
	// rules check a whole reply. The first is what the task asks for.
	rules []rule
	// grade is how good a reply is, 0 to 1, and why: what the judge sees of it.
	grade func(input, reply string) (score float64, why string)
}

type rule struct {
	name  string
	holds func(input, reply string) bool
}

func findTask(name string) (*task, error) {
	for _, t := range []*task{&ticket, &grammar} {
		if t.name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("-task is %q, want ticket or grammar", name)
}

// gains compares the replies of both models to the held-out inputs by each rule.
func (t *task) gains(r *auto.Result) []agents.Gain {
	gains := make([]agents.Gain, len(t.rules))
	for i, rule := range t.rules {
		g := &gains[i]
		for _, s := range r.Samples {
			g.Add(rule.holds(s.Input, s.Base), rule.holds(s.Input, s.Model))
		}
		g.Failed = len(r.Plan.Held) - len(r.Samples)
	}
	return gains
}

// part is one thing that a judge looks for in a reply.
type part struct {
	what   string
	weight float64
	share  float64 // how much of it there is, 0 to 1
}

// total adds up parts whose weights sum to 1, and names those that are not there in full.
func total(parts ...part) (score float64, why string) {
	var missing []string
	for _, p := range parts {
		score += p.weight * p.share
		if p.share < 1 {
			missing = append(missing, p.what)
		}
	}
	if len(missing) == 0 {
		return score, "it is all that was asked for"
	}
	return score, "it lacks " + strings.Join(missing, ", ")
}

func when(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }
