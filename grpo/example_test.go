package grpo_test

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// A group of two answers to one prompt becomes a loss. The gradient makes the tokens of the better answer more likely.
func Example() {
	advantages, _ := credit.Advantages([]float64{1, 0}, credit.AdvantageConfig{})
	var group []grpo.Sequence
	for i, answer := range [][]int32{{8, 9}, {4, 7}} {
		group = append(group, grpo.Sequence{
			IDs:        append([]int32{5, 6}, answer...), // after the prompt
			Trained:    []bool{false, false, true, true},
			Logprobs:   []float32{0, 0, -1.5, -1.5}, // as they were sampled
			Advantage:  advantages[i],
			Trajectory: i,
		})
	}
	group, err := credit.Normalize(group, credit.NormalizeConfig{})
	check(err)
	var sampled, advantage, weight []float32 // [N] of the trained tokens
	trained := float32(credit.NumTrained(group))
	for _, s := range group {
		for i := range 2 {
			sampled, advantage = append(sampled, s.Logprobs[2+i]), append(advantage, float32(s.Advantage))
			weight = append(weight, float32(s.Weight)/trained)
		}
	}

	device, err := cpu.New(nil)
	check(err)
	defer device.Finalize()
	exec, err := graph.NewExec(device, func(logprobs, old, advantage, weight, trained *graph.Node) *graph.Node {
		loss, _ := grpo.BuildLoss(grpo.PolicyLoss{}, grpo.LossInputs{
			New: logprobs, Old: old, Advantage: advantage, Weight: weight, Mask: graph.OnesLike(old), Denominator: trained,
		})
		return graph.Gradient(loss, logprobs)[0]
	})
	check(err)
	defer exec.Finalize()
	gradient, err := exec.Call1(sampled, sampled, advantage, weight, trained) // new logprobs are those of a model
	check(err)
	fmt.Println(gradient.Value())
	// Output: [-0.25 -0.25 0.25 0.25]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
