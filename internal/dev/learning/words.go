package learning

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// questions is a task of one question and one answer.
type questions struct {
	system string
	known  []question // trained on
	unseen []question // measured; the same ones where nothing is held out
	groups int        // questions of a step
	size   int        // of a group
	greedy bool       // measure without chance
	rate   float64
	// entropy is the bonus for it.
	entropy float64
	reward  func(q question, reply string) (reward, value float64)
	// shown, if any, are answers of which few are right: the first step is a supervised one on them, of so many epochs.
	shown  []question
	epochs int
}

// question is asked, and answered so.
type question struct{ text, answer string }

// begin starts the conversation about a question.
func (a *questions) begin(q question) *art.Trajectory {
	t := art.NewTrajectory()
	if a.system != "" {
		t.Add(art.System(a.system))
	}
	t.Add(art.User(q.text))
	return t
}

func (a *questions) ask(ctx context.Context, m *art.Model, q question, o *art.ChatOptions) (*art.Trajectory, error) {
	t := a.begin(q)
	reply, err := m.Chat(ctx, t, o)
	if err == nil {
		t.Reward, t.Metrics["value"] = a.reward(q, strings.TrimSpace(reply.Content))
	}
	return t, err
}

// Show implements Shower.
func (a *questions) Show() (chats []*art.Trajectory, cfg *art.SFTConfig) {
	for _, q := range a.shown {
		t := a.begin(q)
		t.Add(art.Assistant(q.answer))
		chats = append(chats, t)
	}
	return chats, &art.SFTConfig{LearningRate: 1e-3, BatchSize: 16, Epochs: a.epochs, Decay: new(0.1)}
}

// Groups implements Agent.
func (a *questions) Groups(ctx context.Context, m *art.Model, step int) ([]*art.TrajectoryGroup, error) {
	var asked []question
	for i := range min(a.groups, len(a.known)) {
		asked = append(asked, a.known[(step*a.groups+i)%len(a.known)])
	}
	return gather(ctx, asked, a.size, step, func(ctx context.Context, q question) (*art.Trajectory, error) {
		return a.ask(ctx, m, q, nil)
	})
}

// Config implements Agent.
func (a *questions) Config(int) *art.TrainConfig {
	return &art.TrainConfig{LearningRate: a.rate, MaxGradNorm: 1, EntropyBonus: a.entropy}
}

// Measure implements Agent.
func (a *questions) Measure(ctx context.Context, m *art.Model) (map[string]float64, error) {
	var o *art.ChatOptions
	if a.greedy {
		o = greedy()
	}
	return average(ctx, a.unseen, func(ctx context.Context, q question) (*art.Trajectory, error) {
		return a.ask(ctx, m, q, o)
	})
}

// YesNoMaybe is ART's test of trainability: of three words that are asked for, the third is worth most.
func YesNoMaybe() *Task {
	return &Task{
		Name: "yes-no-maybe", What: "say yes (reward 0.5), no (0.75) or maybe (1)", Steps: 12, Every: 1, Aim: AtLeast(0.9),
		Measure: "mean reward of sampled replies", Context: 64, MaxTokens: 8,
		Start: func() Agent {
			a := &questions{groups: 12, size: 8, rate: 2e-3, reward: func(_ question, reply string) (reward, value float64) {
				reward = map[string]float64{"yes": 0.5, "no": 0.75, "maybe": 1}[reply]
				return reward, reward
			}}
			for _, words := range []string{
				"yes, no or maybe", "yes, maybe or no", "no, yes or maybe", "no, maybe or yes", "maybe, yes or no",
				"maybe, no or yes",
			} {
				a.known = append(a.known, question{text: "respond with " + words}, question{text: "just say " + words})
			}
			for range 8 {
				a.unseen = append(a.unseen, a.known...)
			}
			return a
		},
	}
}

// ReverseWord spells words backwards: letters apart, so that each is a token.
func ReverseWord() *Task {
	return &Task{
		Name: "reverse", What: "spell a word of three letters backwards; reward by letter", Steps: 50, Every: 10,
		Aim: AtLeast(0.8), Measure: "letters in the right place, greedy, on held-out words", Context: 96, MaxTokens: 12,
		Rank: 32,
		Start: func() Agent {
			a := &questions{groups: 16, size: 16, rate: 5e-4, entropy: 0.02, greedy: true}
			a.reward = func(q question, reply string) (reward, value float64) {
				right := matches(q.answer, reply)
				return right, right
			}
			var all []question
			for _, x := range "bdlmrtv" {
				for _, y := range "aeiou" {
					for _, z := range "bdlmrtv" {
						all = append(all, question{
							fmt.Sprintf("Reverse: %c %c %c", x, y, z), fmt.Sprintf("%c %c %c", z, y, x),
						})
					}
				}
			}
			a.known, a.unseen = split(all, 49)
			a.shown = jumbled(a.known)
			return a
		},
	}
}

// jumbled answers each question with the letters of the word in each of their orders, of which one is right.
func jumbled(words []question) (shown []question) {
	for _, q := range words {
		l := strings.Fields(q.answer)
		for _, o := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			shown = append(shown, question{q.text, strings.Join([]string{l[o[0]], l[o[1]], l[o[2]]}, " ")})
		}
	}
	return shown
}

// matches is the share of the letters of want that reply has in the same place; longer replies have fewer.
func matches(want, reply string) float64 {
	w, r := strings.Fields(want), strings.Fields(reply)
	n := 0
	for i := range min(len(w), len(r)) {
		if w[i] == r[i] {
			n++
		}
	}
	return float64(n) / float64(max(len(w), len(r)))
}

// Addition adds two digits. All sums are trained on: a model of this size learns them one by one.
func Addition() *Task {
	return &Task{
		Name: "add", What: "add two digits; a wrong number has reward 0.1", Steps: 150, Every: 10, Aim: AtLeast(0.9),
		Measure: "right answers, greedy, to all 100 sums", Context: 96, MaxTokens: 8, Rank: 32,
		Start: func() Agent {
			a := &questions{
				system: "Reply with a number.", groups: 50, size: 16, rate: 1.5e-3, greedy: true,
				reward: func(q question, reply string) (reward, value float64) {
					if reply == q.answer {
						return 1, 1
					}
					if _, err := strconv.Atoi(reply); err == nil {
						return 0.1, 0
					}
					return 0, 0
				},
			}
			for i := range 100 {
				text, sum := fmt.Sprintf("%d+%d=", i/10, i%10), i/10+i%10
				a.known = append(a.known, question{text, strconv.Itoa(sum)})
				for n := max(0, sum-maxError); n <= sum+maxError; n++ {
					a.shown = append(a.shown, question{text, strconv.Itoa(n)})
				}
			}
			a.known, _ = split(a.known, 0)
			a.unseen, a.epochs = a.known, 10
			return a
		},
	}
}

// maxError is how far answers to a sum that are shown are off: as often by any number up to it.
const maxError = 2

// split shuffles scenarios, always in the same way, and holds n out.
func split[S any](all []S, n int) (known, unseen []S) {
	rand.New(rand.NewPCG(0, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[n:], all[:n]
}
