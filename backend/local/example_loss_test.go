package local_test

import (
	"context"
	"fmt"
	"io"
	"os"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// sapo is Soft Adaptive Policy Optimization (Gao et al. 2025, https://arxiv.org/abs/2511.20347): a sigmoid in place of
// PPO's bounds, which takes the gradient away smoothly as the ratio leaves 1.
//
//	L = -4/τ · sigmoid(τ·(ratio - 1)) · A,  τ = 1 where A > 0, 1.05 elsewhere
type sapo struct{}

func (sapo) Validate() error { return nil }

func (sapo) Spec() grpo.LossSpec {
	return grpo.LossSpec{Key: "sapo", Sampled: true, Metrics: []grpo.Metric{
		{Name: "loss/policy", Reduction: grpo.MeanOverUpdates}, {Name: "loss/gate_mean"},
	}}
}

func (sapo) Build(in grpo.LossInputs) (loss *Node, metrics map[string]*Node) {
	ratio := Exp(ClipScalar(Sub(in.New, in.Old), -20, 20)) // [N]
	one := OnesLike(ratio)
	tau := Where(GreaterThan(in.Advantage, ZerosLike(ratio)), one, MulScalar(one, 1.05))
	gate := Mul(Sigmoid(Mul(tau, MinusOne(ratio))), Div(MulScalar(one, 4), tau))
	loss = in.Mean(Neg(Mul(gate, in.Advantage)))
	return loss, map[string]*Node{"loss/policy": loss, "loss/gate_mean": ReduceAllSum(Mul(gate, in.Mask))}
}

// A loss from a paper is a value with a key, a formula and metrics. All options beside those of the built-in losses,
// such as KL and Correction, work with it.
func ExampleOptions_losses() {
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	backend, err := local.Open(ctx, &local.Options{
		Dir: dir, Context: 64, Progress: io.Discard, Losses: []grpo.Loss{sapo{}},
	})
	check(err)
	defer backend.Close()
	model := art.NewModel("soft", &art.ModelOptions{Base: "tiny", Chat: art.ChatOptions{MaxTokens: new(4)}})
	check(model.Register(ctx, backend))

	groups, err := art.GatherGroups(ctx, []string{"yes or no"}, func(
		ctx context.Context, question string,
	) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		reply, err := model.Chat(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		t.Reward = float64(len(reply.Content))
		return t, nil
	}, &art.GatherOptions{GroupSize: 8})
	check(err)
	result, err := model.Train(ctx, groups, &art.TrainConfig{Loss: "sapo", LearningRate: 1e-3, KL: credit.KL{Coef: 0.01}})
	check(err)
	fmt.Printf("step %d, on policy the gate is %.0f\n", result.Step, result.Metrics["loss/gate_mean"])
	// Output: step 1, on policy the gate is 2
}
