package backendtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/goart-dev/art"
)

// Learning says how [RunLearning] trains. Zero values are the defaults.
type Learning struct {
	Steps     int // default 8
	GroupSize int // default 24
	// Config of the trainings. nil is a learning rate of 2e-3 and gradients bounded by 1: for small models.
	Config *art.TrainConfig
	// Question that is asked. It should leave the model in doubt about its first token. Default "yes or no".
	Question string
}

// RunLearning tests that a backend learns, in a small run on which any correct one improves: the same question is asked
// with a tool offered and without. A token that the model begins some replies with is rewarded with the tool, and any
// other one without. So the backend has to tell the model of the tool, and to learn from rewards of either sign.
//
// It fails for a backend that negates rewards, leaves tools out, or returns logprobs that are not those of what it
// samples. open returns a backend on which nothing is registered; RunLearning closes it. Base "tiny" must work.
func RunLearning(t *testing.T, open func(t *testing.T) art.Backend, how *Learning) {
	b := opened(t, open)
	(&subtest{T: t}).supervise(2*timeLimit(t), func(t *subtest) { testLearning(t, b, learningOf(how)) })
}

// testLearning trains, and compares how replies begin before and after.
func testLearning(t *subtest, b art.Backend, l *learning) {
	m := describe(t, "", &art.ModelOptions{})
	must(t, "Register", m.Register(t.Context(), b))
	l.m, l.token = m, -1
	const draws = 200
	before := l.measure(t, draws, 1)
	l.token = before.doubtful(t)
	// Tokens must be sampled as often as their logprobs say: for each that is expected 10 times or more, the count is
	// within five standard deviations.
	for i, samples := range before {
		counts, logprobs := map[int32]float64{}, map[int32]float64{}
		for _, s := range samples {
			counts[s.IDs[0]]++
			logprobs[s.IDs[0]] = float64(s.Logprobs[0])
		}
		n := float64(len(samples))
		for token, logprob := range logprobs {
			p := math.Exp(logprob)
			if expected := n * p; math.Max(expected, counts[token]) >= 10 &&
				math.Abs(counts[token]-expected) > 5*math.Sqrt(math.Max(1, expected*(1-p))) {
				t.Errorf("token %d was sampled %.0f times of %.0f in context %d, and its logprob of %.2f says %.0f times", token,
					counts[token], n, i, logprob, expected)
			}
		}
	}
	for step := range l.Steps {
		_, err := l.m.Train(t.Context(), l.gather(t, l.GroupSize, uint64(step)+100), l.Config)
		must(t, "Train", err)
	}
	after := l.measure(t, draws, 2)
	was, is := before.frequency(l.token), after.frequency(l.token)
	t.Logf("token %d begins %.2f of replies with the tool and %.2f without; before it was %.2f and %.2f", l.token, is[0],
		is[1], was[0], was[1])
	if is[0] < math.Min(0.9, was[0]+0.15) {
		t.Errorf("the rewarded token began %.2f of replies and begins %.2f: rewards do not make it more likely", was[0],
			is[0])
	}
	if is[0]-is[1] < 0.4 {
		t.Errorf("the token begins %.2f of replies with the tool and %.2f without: they are not told apart", is[0], is[1])
	}
}

type learning struct {
	Learning
	m     *art.Model
	token int32
}

func learningOf(how *Learning) *learning {
	l := &learning{}
	if how != nil {
		l.Learning = *how
	}
	l.Steps, l.GroupSize = cmp.Or(l.Steps, 8), cmp.Or(l.GroupSize, 24)
	l.Config = cmp.Or(l.Config, &art.TrainConfig{LearningRate: 2e-3, MaxGradNorm: 1})
	l.Question = cmp.Or(l.Question, "yes or no")
	return l
}

// play asks the question, with the tool in the first context and without in the second.
func (l *learning) play(ctx context.Context, which int) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.User(l.Question))
	if which == 0 {
		t.Tools = []art.Tool{{Name: "add", Parameters: json.RawMessage(`{"type": "object", "properties": {}}`)}}
	}
	one := 1
	err := protect(func() error { _, err := l.m.Chat(ctx, t, &art.ChatOptions{MaxTokens: &one}); return err })
	if err != nil {
		return t, err
	}
	samples := t.Samples()
	if len(samples) == 0 || len(samples[0].IDs) == 0 || len(samples[0].Logprobs) == 0 {
		return t, errors.New("the reply has no Sample with a token and its logprob")
	}
	if l.token >= 0 && (samples[0].IDs[0] == l.token) == (which == 0) {
		t.Reward = 1
	}
	return t, nil
}

// first are the first tokens of replies in both contexts.
type first [2][]*art.Sample

func (l *learning) gather(t *subtest, n int, seed uint64) []*art.TrajectoryGroup {
	t.Helper()
	groups, err := art.GatherGroups(t.Context(), []int{0, 1}, l.play, &art.GatherOptions{GroupSize: n, Seed: seed})
	must(t, "GatherGroups", err)
	return groups
}

// measure asks n times in each context.
func (l *learning) measure(t *subtest, n int, seed uint64) (out first) {
	t.Helper()
	for i, g := range l.gather(t, n, seed) {
		for _, trajectory := range g.Trajectories {
			out[i] = append(out[i], trajectory.Samples()[0])
		}
	}
	return out
}

// frequency is how often replies begin with a token, in each context.
func (f first) frequency(token int32) (out [2]float64) {
	for i, samples := range f {
		for _, s := range samples {
			if s.IDs[0] == token {
				out[i] += 1 / float64(len(samples))
			}
		}
	}
	return out
}

// doubtful returns the most frequent token that begins at most two thirds of the replies in both contexts.
func (f first) doubtful(t *subtest) int32 {
	t.Helper()
	best, token := 0.0, int32(-1)
	for _, samples := range f {
		for _, s := range samples {
			p := f.frequency(s.IDs[0])
			if max(p[0], p[1]) <= 2.0/3 && p[0] > best {
				best, token = p[0], s.IDs[0]
			}
		}
	}
	if best < 0.03 {
		t.Fatalf("the model is in no doubt how to reply: set Learning.Question to something else")
	}
	return token
}
