package model_test

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/model"
)

// A model predicts the token after a prompt. [model.Load] reads one from a folder; the weights here are random.
func Example() {
	config, err := model.ParseConfig([]byte(`{"model_type": "llama", "vocab_size": 50, "hidden_size": 16,
		"intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
		"max_position_embeddings": 64}`))
	check(err)
	weights, err := model.Random(config, 1)
	check(err)
	device, err := cpu.New(nil)
	check(err)
	defer device.Finalize()
	params, err := weights.Params(device)
	check(err)

	exec, err := graph.NewExec(device, func(in []*graph.Node) *graph.Node {
		last := len(in) - 1
		f := &model.Forward{Config: config, Param: params.Lookup(in[:last])}
		hidden, _ := f.Hidden(model.Input{Tokens: in[last]}) // [1, 3, 16]
		return f.LogProbs(graph.Squeeze(graph.Slice(hidden, graph.AxisElem(0), graph.AxisElem(-1)), 0))
	})
	check(err)
	defer exec.Finalize()
	args := []any{}
	for _, p := range params.Tensors {
		args = append(args, p)
	}
	logprobs, err := exec.Call1(append(args, [][]int32{{7, 3, 9}})...)
	check(err)
	values, err := tensors.CopyFlatData[float32](logprobs)
	check(err)
	next := slices.Index(values, slices.Max(values)) // the likeliest one, by its id
	fmt.Println(len(values), "tokens to choose from:", 0 <= next && next < 50)
	// Output: 50 tokens to choose from: true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
