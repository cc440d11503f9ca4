package lora_test

import (
	"fmt"
	"os"

	"github.com/goart-dev/art/lora"
)

// A new adapter is stored as PEFT stores one, and read again. Merging it changes nothing before it has been trained:
// its matrix B is zero.
func Example() {
	layers := []lora.LayerShape{ // of a model: its Config.Adaptable
		{Name: "model.layers.0.self_attn.q_proj", In: 4, Out: 3},
		{Name: "model.layers.0.mlp.up_proj", In: 4, Out: 8},
	}
	adapter, err := lora.New(lora.Config{Rank: 2, Alpha: 4, Targets: []string{"q_proj"}}, layers, 1)
	check(err)
	for _, p := range adapter.Params() {
		fmt.Println(p.Name, p.Shape)
	}

	dir, err := os.MkdirTemp("", "lora")
	check(err)
	defer os.RemoveAll(dir)
	check(adapter.Save(dir, "org/base"))
	read, err := lora.Load(dir)
	check(err)
	weight := []float32{11: 1} // of q_proj: [Out, In]
	check(read.Merge(weight, layers[0].Name))
	fmt.Println(read.Config().Scale(layers[0].Name), weight)
	// Output:
	// model.layers.0.self_attn.q_proj.lora_A [4 2]
	// model.layers.0.self_attn.q_proj.lora_B [2 3]
	// 2 [0 0 0 0 0 0 0 0 0 0 0 1]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
