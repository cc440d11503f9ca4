// Package sums is the task of the example arithmetic: sums of two digits, and the agent that is asked for them.
package sums

import (
	"context"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/model/tiny"
)

// Sum is a question: a + b.
type Sum struct {
	a, b     int
	question string // with {a} and {b}
}

var number = regexp.MustCompile(`-?[0-9]+`)

// Split returns the sums of two digits, each in four wordings: three quarters to train on, and the held-out ones.
func Split() (known, unseen []Sum) {
	for i, cell := range rand.New(rand.NewPCG(0, 0)).Perm(100) {
		for _, question := range []string{"What is {a} + {b}?", "{a} plus {b}?", "{a}+{b}=", "How much is {a} plus {b}?"} {
			s := Sum{cell / 10, cell % 10, question}
			if i < 25 {
				unseen = append(unseen, s)
			} else {
				known = append(known, s)
			}
		}
	}
	return known, unseen
}

// Ask is the agent. A correct answer is the number and nothing else; a wrong number gets a small reward, so that a
// model that talks around the answer first learns to give one.
func Ask(ctx context.Context, model *art.Model, s Sum, opts *art.ChatOptions) (*art.Trajectory, error) {
	question := strings.NewReplacer("{a}", strconv.Itoa(s.a), "{b}", strconv.Itoa(s.b)).Replace(s.question)
	t := art.NewTrajectory(art.System("Reply with a number."))
	if model.Options().Base != tiny.Name { // which knows what an answer looks like; others get an example
		t.Add(art.User("What is 10 + 10?"))
		t.Add(art.Assistant("20"))
	}
	t.Add(art.User(question))
	reply, err := model.Chat(ctx, t, opts)
	if err != nil {
		return nil, err
	}
	t.Metrics = map[string]float64{"right": 0}
	want, text := strconv.Itoa(s.a+s.b), strings.TrimSpace(reply.Content)
	switch {
	case text == want:
		t.Reward, t.Metrics["right"] = 1, 1
	case number.FindString(text) == text && text != "":
		t.Reward = 0.1
	}
	return t, nil
}
