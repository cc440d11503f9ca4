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
	trained := credit.NumTrained(group) // N
	for i := range group {
		group[i].Weight /= float64(trained)
	}
	batch, err := grpo.Pack(group, grpo.Layout{Rows: 2, Length: 3, Trained: trained})
	check(err)

	device, err := cpu.New(nil)
	check(err)
	defer device.Finalize()
	exec, err := graph.NewExec(device, func(in []*graph.Node) *graph.Node {
		logprobs := in[0] // [N] of a model, which reads what LogprobInputsOf returns first
		_, others := grpo.LogprobInputsOf(in[1:])
		loss, _ := grpo.BuildLoss(grpo.PolicyLoss{}, grpo.LossInputsOf(others, logprobs))
		return graph.Gradient(loss, logprobs)[0]
	})
	check(err)
	defer exec.Finalize()
	args := append([]any{[]float32{-1.5, -1.5, -1.5, -1.5}}, batch.Tensors(float32(trained))...)
	gradient, err := exec.Call1(args...)
	check(err)
	fmt.Println(gradient.Value())
	// Output: [-0.25 -0.25 0.25 0.25]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
