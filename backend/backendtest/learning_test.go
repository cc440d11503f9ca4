package backendtest_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
)

// bandit is a backend that learns: a softmax over four replies for each prompt, trained by the policy gradient.
type bandit struct {
	mu     sync.Mutex
	logits map[string]*[4]float64
	step   int

	// defects
	negated, toolless, shifted bool
}

func (b *bandit) Register(context.Context, *art.Model) (int, error) { return 0, nil }
func (b *bandit) Close() error                                      { return nil }

// context is what the policy sees of a prompt.
func (b *bandit) context(tools bool, messages []art.Message) string {
	return fmt.Sprint(tools && !b.toolless, messages[len(messages)-1].Content)
}

func (b *bandit) policy(key string) (p [4]float64) {
	if b.logits == nil {
		b.logits = map[string]*[4]float64{}
	}
	if b.logits[key] == nil {
		b.logits[key] = &[4]float64{}
	}
	sum := 0.0
	for i, x := range b.logits[key] {
		p[i] = math.Exp(x)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func (b *bandit) Complete(_ context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.policy(b.context(len(req.Tools) > 0, req.Messages))
	u, k := rand.New(rand.NewPCG(req.Settings.Seed, 7)).Float64(), 0
	for ; k < 3 && u > p[k]; k++ {
		u -= p[k]
	}
	logprob := float32(math.Log(p[k]))
	if b.shifted {
		logprob--
	}
	reply := art.Assistant("abcd"[k : k+1])
	reply.Sample = &art.Sample{PromptIDs: []int32{9}, IDs: []int32{int32(k)}, Logprobs: []float32{logprob},
		Settings: req.Settings, Step: b.step}
	return &art.ChatResponse{Model: m.Name(), Message: reply}, nil
}

func (b *bandit) Train(_ context.Context, _ *art.Model, groups []*art.TrajectoryGroup,
	_ *art.TrainConfig) (*art.TrainResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range groups {
		mean := 0.0
		for _, t := range g.Trajectories {
			mean += t.Reward / float64(len(g.Trajectories))
		}
		for _, t := range g.Trajectories {
			advantage := t.Reward - mean
			if b.negated {
				advantage = -advantage
			}
			key := b.context(len(t.Tools) > 0, t.Messages[:1])
			p, chosen := b.policy(key), t.Samples()[0].IDs[0]
			for i := range p {
				gradient := -p[i]
				if int32(i) == chosen {
					gradient++
				}
				b.logits[key][i] += 0.5 * advantage * gradient
			}
		}
	}
	b.step++
	return &art.TrainResult{Step: b.step}, nil
}

var learningDefect = flag.String("learning-defect", "", "defect of the bandit, for TestRunLearning_FindsDefects")

var learningDefects = map[string]func(*bandit){
	"none":                  func(*bandit) {},
	"negates rewards":       func(b *bandit) { b.negated = true },
	"drops tools":           func(b *bandit) { b.toolless = true },
	"logprobs are not true": func(b *bandit) { b.shifted = true },
}

// TestLearningBroken runs the test on a bandit with a defect. It does nothing on its own.
func TestLearningBroken(t *testing.T) {
	defect, ok := learningDefects[*learningDefect]
	if !ok {
		t.Skip("a part of TestRunLearning_FindsDefects")
	}
	backendtest.RunLearning(t, func(*testing.T) art.Backend {
		b := &bandit{}
		defect(b)
		return b
	}, nil)
}

// A bandit that learns passes, and each defect is found.
func TestRunLearning_FindsDefects(t *testing.T) {
	for name := range learningDefects {
		out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLearningBroken$",
			"-learning-defect="+name).CombinedOutput()
		if (err == nil) != (name == "none") || strings.Contains(string(out), "SKIP") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
