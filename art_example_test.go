package art_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// check ends an example that fails.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// scripted returns a model whose i-th reply in a conversation is the i-th text.
func scripted(opts *art.ModelOptions, replies ...string) *art.Model {
	m := art.NewModel("example", opts)
	check(m.Register(context.Background(), &arttest.Backend{Reply: arttest.Script(replies...)}))
	return m
}

// A message from another program keeps its unknown fields.
func ExampleMessage() {
	wire := `{"role":"assistant","refusal":null,"content":[{"type":"text","text":"Check"},{"type":"text","text":"mate."}]}`
	var m art.Message
	check(json.Unmarshal([]byte(wire), &m))
	fmt.Println(m.Role, m.Content)

	same, err := json.Marshal(m)
	check(err)
	fmt.Println(string(same))

	made, err := json.Marshal(art.ToolResult("call-1", "e4"))
	check(err)
	fmt.Println(string(made))
	// Output:
	// assistant Checkmate.
	// {"role":"assistant","refusal":null,"content":[{"type":"text","text":"Check"},{"type":"text","text":"mate."}]}
	// {"role":"tool","content":"e4","tool_call_id":"call-1"}
}

func ExampleTool() {
	tool := art.Tool{
		Name: "move", Parameters: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"from":{"type":"string"}}}`),
	}
	wire, err := json.Marshal(tool)
	check(err)
	fmt.Println(string(wire)) // properties stay in this order: they are part of the prompt
	// Output:
	// {"type":"function","function":{"name":"move","parameters":{"type":"object","properties":{"to":{"type":"string"},"from":{"type":"string"}}}}}
}

func ExampleTrajectory() {
	t := art.Trajectory{Reward: math.Inf(1), Metadata: map[string]any{"level": 3, "speed": 3.0}}
	t.Add(art.System("You are a chess engine."), art.User("e4"))
	stored, err := json.Marshal(t)
	check(err)
	fmt.Println(string(stored))

	var read art.Trajectory
	check(json.Unmarshal(stored, &read))
	fmt.Printf("%v %T %T\n", read.Reward, read.Metadata["level"], read.Metadata["speed"])
	// Output:
	// {"messages":[{"role":"system","content":"You are a chess engine."},{"role":"user","content":"e4"}],"reward":"Infinity","metadata":{"level":3,"speed":3.0}}
	// +Inf int float64
}

func ExampleModel_Chat() {
	ctx := context.Background()
	model := scripted(nil, "e5", "Nc6")
	t := art.NewTrajectory(art.System("You play black."))
	for _, move := range []string{"e4", "Nf3"} {
		t.Add(art.User(move))
		reply, err := model.Chat(ctx, t, nil)
		check(err)
		fmt.Println(move, reply.Content)
	}
	fmt.Println(len(t.Messages), "messages,", len(t.Samples()), "to train on")
	// Output:
	// e4 e5
	// Nf3 Nc6
	// 5 messages, 2 to train on
}

// A frozen model is a baseline for the same rollout code: its replies are not trained on.
func ExampleModelOptions_frozen() {
	baseline := scripted(&art.ModelOptions{Frozen: true}, "e5")
	t := art.NewTrajectory(art.User("e4"))
	reply, err := baseline.Chat(context.Background(), t, nil)
	check(err)
	fmt.Println(reply.Content, len(t.Samples()))

	_, err = baseline.Train(context.Background(), []*art.TrajectoryGroup{{}}, nil)
	fmt.Println(errors.Is(err, art.ErrFrozen))
	// Output:
	// e5 0
	// true
}

// Each scenario is tried several times. A failed rollout is a Failure of its group.
func ExampleGatherGroups() {
	model := scripted(nil, "4")
	sums := []string{"2+2", "2+3", "crash"}
	groups, err := art.GatherGroups(context.Background(), sums, func(
		ctx context.Context, sum string,
	) (*art.Trajectory, error) {
		if sum == "crash" {
			return nil, errors.New("no such sum")
		}
		t := art.NewTrajectory(art.User(sum))
		reply, err := model.Chat(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		if sum == "2+2" && reply.Content == "4" {
			t.Reward = 1
		}
		return t, nil
	}, &art.GatherOptions{GroupSize: 2, MaxFailures: 2})
	check(err)
	for i, g := range groups {
		fmt.Printf("%s:", sums[i])
		for _, t := range g.Trajectories {
			fmt.Printf(" %v", t.Reward)
		}
		for _, f := range g.Failures {
			fmt.Printf(" %q", f.Message)
		}
		fmt.Println()
	}
	// Output:
	// 2+2: 1 1
	// 2+3: 0 0
	// crash: "no such sum" "no such sum"
}

// An evaluation tries each scenario once and logs one group.
func ExampleGather() {
	ctx := context.Background()
	model := scripted(nil, "4")
	group, err := art.Gather(ctx, []string{"2+2", "2+3"}, func(ctx context.Context, sum string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(sum))
		_, err := model.Chat(ctx, t, nil)
		if sum == "2+2" {
			t.Reward = 1
		}
		return t, err
	}, nil)
	check(err)
	check(model.Log(ctx, "val", []*art.TrajectoryGroup{group}, nil))

	history, err := model.Backend().(driver.CheckpointKeeper).History(ctx, model)
	check(err)
	fmt.Println(history[0].Split, history[0].Step, history[0].Metrics["val/reward"])
	// Output: val 0 0.5
}

// A judge, a filter or a curriculum works on a group as soon as it is complete.
func ExampleGatherOptions_after() {
	hard := func(_ context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		if g.Trajectories[0].Reward > 8 {
			return nil, nil // solved: nothing to learn
		}
		return []*art.TrajectoryGroup{g}, nil
	}
	groups, err := art.GatherGroups(context.Background(), []float64{7, 9, 8}, func(
		_ context.Context, reward float64,
	) (*art.Trajectory, error) {
		return &art.Trajectory{Reward: reward}, nil
	}, &art.GatherOptions{After: hard})
	check(err)
	for _, g := range groups {
		fmt.Println(g.Trajectories[0].Reward)
	}
	// Output:
	// 7
	// 8
}

// An environment that draws from Rand plays the same game again with the same seed.
func ExampleRand() {
	roll := func(ctx context.Context, _ int) (*art.Trajectory, error) {
		return &art.Trajectory{Reward: float64(1 + art.Rand(ctx).IntN(6))}, nil
	}
	for _, concurrency := range []int{1, 5} {
		group, err := art.Gather(context.Background(), make([]int, 5), roll,
			&art.GatherOptions{Seed: 1, Concurrency: concurrency})
		check(err)
		var rolled []float64
		for _, t := range group.Trajectories {
			rolled = append(rolled, t.Reward)
		}
		fmt.Println(rolled)
	}
	// Output:
	// [2 6 6 2 3]
	// [2 6 6 2 3]
}

// A resumed run continues with the next batch.
func ExampleBatches() {
	tasks := []string{"a", "b", "c"}
	for _, start := range []int{0, 2} {
		fmt.Println("from step", start)
		for b := range art.Batches(tasks, &art.BatchOptions{Size: 2, Epochs: 2, Start: start, InOrder: true}) {
			fmt.Println(b.Epoch, b.Step, b.Items)
		}
	}
	// Output:
	// from step 0
	// 0 0 [a b]
	// 0 1 [c]
	// 1 2 [a b]
	// 1 3 [c]
	// from step 2
	// 1 2 [a b]
	// 1 3 [c]
}

// An agent that uses an OpenAI client keeps its code and gets another HTTP client.
func ExampleRecord() {
	model := scripted(nil, "Paris")
	agent := func(ctx context.Context, client *http.Client) error {
		body := strings.NewReader(`{"messages":[{"role":"user","content":"Capital of France?"}]}`)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.openai.com/v1/chat/completions", body)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	t, err := art.Record(context.Background(), func(ctx context.Context) error { return agent(ctx, model.HTTPClient()) })
	check(err)
	for _, m := range t.Messages {
		fmt.Println(m.Role, m.Content, m.Sample != nil)
	}
	// Output:
	// user Capital of France? false
	// assistant Paris true
}

// Metrics of an evaluation, without a backend that stores them.
func ExampleMetrics() {
	group := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{
		{Reward: 1, Metrics: map[string]float64{"moves": 3}},
		{Reward: 0, Metrics: map[string]float64{"moves": 4}},
	}}
	m := art.Metrics(group)
	fmt.Println(m["reward"], m["reward_std_dev"], m["moves"])
	// Output: 0.5 0.5 3.5
}

// Metrics of the groups are computed; others can be given.
func ExampleModel_Log() {
	ctx := context.Background()
	model := scripted(nil, "x")
	groups := []*art.TrajectoryGroup{{
		Trajectories: []*art.Trajectory{{Reward: 1, Metrics: map[string]float64{"turns": 4}}, {Reward: 0, Metrics: map[string]float64{"turns": 6}}},
	}}
	check(model.Log(ctx, "train", groups, map[string]float64{"loss/policy": 0.25, "seconds": 2}))
	history, err := model.Backend().(driver.CheckpointKeeper).History(ctx, model)
	check(err)
	fmt.Println(history[0].Metrics)
	// Output: map[loss/policy:0.25 train/exception_rate:0 train/reward:0.5 train/reward_std_dev:0.5 train/seconds:2 train/turns:5]
}

// bandit is a backend with a policy of three numbers: the logits of the moves.
type bandit struct {
	mu     sync.Mutex
	step   int
	logits [3]float64
}

var moves = []string{"rock", "paper", "scissors"}

func (b *bandit) Register(context.Context, *art.Model) (int, error) { return b.step, nil }
func (b *bandit) Close() error                                      { return nil }

// Complete samples a move with probability proportional to exp(logit).
func (b *bandit) Complete(_ context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	total := 0.0
	for _, logit := range b.logits {
		total += math.Exp(logit)
	}
	u := total * rand.New(rand.NewPCG(req.Settings.Seed, 0)).Float64()
	move := 0
	for ; move < 2 && u >= math.Exp(b.logits[move]); move++ {
		u -= math.Exp(b.logits[move])
	}
	reply := art.Assistant(moves[move])
	logprob := float32(b.logits[move] - math.Log(total))
	reply.Sample = &art.Sample{
		IDs: []int32{int32(move)}, Logprobs: []float32{logprob}, Settings: req.Settings, Step: b.step, Finish: art.FinishStop,
	}
	return &art.ChatResponse{Model: fmt.Sprintf("%s@%d", m.Name(), b.step), Message: reply, Finish: art.FinishStop}, nil
}

// Train moves the logits along the advantage: REINFORCE with the mean of the group as baseline.
func (b *bandit) Train(
	_ context.Context, _ *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range groups {
		mean := 0.0
		for _, t := range g.Trajectories {
			mean += t.Reward / float64(len(g.Trajectories))
		}
		for _, t := range g.Trajectories {
			for _, s := range t.Samples() {
				b.logits[s.IDs[0]] += cfg.LearningRate * (t.Reward - mean)
			}
		}
	}
	b.step++
	return &art.TrainResult{Step: b.step}, nil
}

// A backend is four methods. This one learns which move beats an opponent that always plays rock.
func ExampleBackend() {
	ctx := context.Background()
	model := art.NewModel("player", nil)
	check(model.Register(ctx, &bandit{}))
	play := func(ctx context.Context, opponent string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User("Your move?"))
		reply, err := model.Chat(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		switch opponent + "-" + reply.Content {
		case "rock-paper":
			t.Reward = 1
		case "rock-scissors":
			t.Reward = -1
		}
		return t, nil
	}
	for step := model.Step(); step < 20; step++ {
		groups, err := art.GatherGroups(ctx, []string{"rock"}, play, &art.GatherOptions{GroupSize: 16})
		check(err)
		_, err = model.Train(ctx, groups, &art.TrainConfig{LearningRate: 0.2})
		check(err)
	}
	final, err := art.Gather(ctx, make([]string, 100), func(ctx context.Context, _ string) (*art.Trajectory, error) {
		return play(ctx, "rock")
	}, nil)
	check(err)
	won := 0.0
	for _, t := range final.Trajectories {
		won += t.Reward
	}
	fmt.Println("step", model.Step(), "wins 9 of 10 games:", won >= 90)
	// Output: step 20 wins 9 of 10 games: true
}

// Training makes the next step of the model, and the next reply comes from it.
func ExampleModel_Train() {
	ctx := context.Background()
	model := scripted(nil, "x")
	for step := model.Step(); step < 2; step++ {
		groups, err := art.GatherGroups(ctx, []string{"task"}, func(
			ctx context.Context, task string,
		) (*art.Trajectory, error) {
			t := art.NewTrajectory(art.User(task))
			_, err := model.Chat(ctx, t, nil)
			t.Reward = art.Rand(ctx).Float64()
			return t, err
		}, nil)
		check(err)
		result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-4})
		check(err)
		fmt.Println("sampled by step", groups[0].Trajectories[0].Samples()[0].Step, "trained step", result.Step, "skipped",
			len(result.Skipped))
	}
	_, err := model.Train(ctx, nil, &art.TrainConfig{LearningRate: -1, Loss: "a3c"})
	fmt.Println(err)
	// Output:
	// sampled by step 0 trained step 1 skipped 0
	// sampled by step 1 trained step 2 skipped 0
	// art: train: invalid argument: learning rate is -1, want a finite number >= 0; unknown loss "a3c", want one of ["cispo" "ppo" "grpo" "dr_grpo" "dapo" "gspo" "importance_sampling" "reinforce" "dro" "cross_entropy"] (zero values are the defaults: leave out what need not change)
}

// Rollouts of later steps run during a training.
func ExamplePipeline() {
	ctx := context.Background()
	model := scripted(nil, "4")
	rollout := func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		_, err := model.Chat(ctx, t, nil)
		t.Reward = art.Rand(ctx).Float64()
		return t, err
	}
	result, err := art.Pipeline(ctx, model, []string{"2+2", "1+3", "7-3", "8/2"}, rollout, &art.PipelineOptions{
		Epochs: 3, Groups: 2, MaxStaleness: new(1), RepeatStale: true,
		Gather: &art.GatherOptions{GroupSize: 8, Extra: 1},
	})
	check(err)
	fmt.Println("steps:", result.Steps)
	// Output:
	// steps: 6
}
