package ggml

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/internal/gguf"
)

func TestConvert_AsGGUF(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, ty := range []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K} {
		n := 256 * 40
		data := make([]byte, ty.Bytes(n))
		for i := range data {
			data[i] = byte(rng.IntN(256))
		}
		want, err := gguf.Tensor{Name: "x", Type: gguf.Type(ty), Shape: []int{n}, Data: data}.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, n)
		ty.Convert(got, data)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(want[i] != want[i] && got[i] != got[i]) {
				t.Fatalf("%v: element %d: %v, want %v", ty, i, got[i], want[i])
			}
		}
	}
}
