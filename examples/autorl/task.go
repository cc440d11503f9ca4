package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/auto"
	"github.com/goart-dev/art/ruler"
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

// Noise of the judge: a share of its scores is chance, and the others are off by normal noise of this standard
// deviation.
const (
	chance    = 0.1
	deviation = 0.1
)

// standInBackend answers by rules where a hosted language model would. It reads the same prompts and writes the same
// form of answers, and it cannot be trained.
type standInBackend struct {
	art.Backend // the methods that are not called stay nil
	reply       func(messages []art.Message) (string, error)
}

func (*standInBackend) Register(context.Context, *art.Model) (int, error) { return 0, nil }

func (b *standInBackend) Complete(ctx context.Context, m *art.Model, r *art.ChatRequest) (*art.ChatResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := b.reply(r.Messages)
	if err != nil {
		return nil, err
	}
	return &art.ChatResponse{ID: "stand-in", Model: m.Name(), Message: art.Assistant(text), Finish: art.FinishStop}, nil
}

func (*standInBackend) Train(
	_ context.Context, m *art.Model, _ []*art.TrajectoryGroup, _ *art.TrainConfig,
) (*art.TrainResult, error) {
	return nil, &art.Error{Op: "train", Err: fmt.Errorf("%w: %s answers by rules", art.ErrInvalid, m.Name()),
		Hint: "train another model"}
}

// random is a generator for a text. It does not depend on what was asked before, so that a run which was stopped goes
// on as it would have.
func random(seed uint64, texts ...string) *rand.Rand {
	h := fnv.New64a()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

var wanted = regexp.MustCompile(`Write ([0-9]+) inputs`)

// write returns the writer: it answers what package auto asks for.
func (t *task) write(seed uint64) func([]art.Message) (string, error) {
	return func(messages []art.Message) (string, error) {
		prompt := messages[len(messages)-1].Content
		switch {
		case strings.HasPrefix(prompt, "Write the instruction"):
			return t.system, nil
		case strings.HasPrefix(prompt, "Somebody compares"):
			return t.rubric, nil
		}
		found := wanted.FindStringSubmatch(prompt)
		if found == nil {
			return "", fmt.Errorf("the writer understands no prompt that begins with %.40q", prompt)
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			return "", err
		}
		rng := random(seed, prompt)
		inputs := make([]map[string]string, n)
		for i := range inputs {
			inputs[i] = map[string]string{"input": t.draw(rng)}
		}
		text, err := json.Marshal(map[string]any{"inputs": inputs})
		return string(text), err
	}
}

// judge returns the judge: it reads RULER's prompt and rates each attempt by its grade, with noise.
func (t *task) judge(seed uint64) func([]art.Message) (string, error) {
	return func(messages []art.Message) (string, error) {
		list, err := attemptsOf(messages[len(messages)-1].Content)
		if err != nil {
			return "", err
		}
		ratings := make([]ruler.Rating, len(list))
		for i, a := range list {
			score, why := t.grade(a.input, a.reply)
			ratings[i] = ruler.Rating{ID: a.id, Explanation: why, Score: noisy(score, random(seed, a.id, a.input, a.reply))}
		}
		return ruler.Answer(ratings...), nil
	}
}

// noisy is a score as a judge gives it who errs.
func noisy(score float64, rng *rand.Rand) float64 {
	if rng.Float64() < chance {
		return rng.Float64()
	}
	return min(1, max(0, score+deviation*rng.NormFloat64()))
}

type attempt struct{ id, input, reply string }

// attemptsOf reads RULER's prompt: lines of JSON between tags, one with what all attempts have in common, and one for
// each attempt.
func attemptsOf(prompt string) ([]attempt, error) {
	var shared []art.Message
	var list []attempt
	lines := strings.Split(prompt, "\n")
	for i := 0; i+1 < len(lines); i++ {
		isContext := strings.HasPrefix(lines[i], "<context-")
		if !isContext && !strings.HasPrefix(lines[i], "<attempt-") {
			continue
		}
		var messages []art.Message
		if err := json.Unmarshal([]byte(lines[i+1]), &messages); err != nil {
			return nil, fmt.Errorf("the judge cannot read the prompt: %w", err)
		}
		if isContext {
			shared = messages
			continue
		}
		id, ok := between(lines[i], `id="`, `"`)
		messages = append(shared[:len(shared):len(shared)], messages...)
		if !ok || len(messages) < 2 {
			return nil, errors.New("the judge cannot read the prompt: an attempt has no id, or no input and reply")
		}
		list = append(list, attempt{id, messages[len(messages)-2].Content, messages[len(messages)-1].Content})
	}
	if len(list) == 0 {
		return nil, errors.New("the judge was asked without an attempt")
	}
	return list, nil
}
