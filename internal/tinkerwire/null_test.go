package tinkerwire

import (
	"encoding/json"
	"testing"
)

// TestJSON_Null: null is no number, and not 0, which would be a logprob of certainty.
func TestJSON_Null(t *testing.T) {
	var tensor Tensor
	if err := json.Unmarshal([]byte(`{"data":[1,null,2],"dtype":"float32","shape":[3]}`), &tensor); err != nil {
		t.Fatal(err)
	}
	var sample SampleOutput
	text := `{"sequences":[{"stop_reason":"stop","tokens":[1,2,3],"logprobs":[1,null,2]},` +
		`{"stop_reason":"stop","tokens":[],"logprobs":null}]}`
	if err := json.Unmarshal([]byte(text), &sample); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]float32{tensor.Floats, sample.Sequences[0].Logprobs} {
		if len(list) != 3 || list[0] != 1 || list[1] == list[1] || list[2] != 2 {
			t.Errorf("got %v", list)
		}
	}
	if got := sample.Sequences[1].Logprobs; got != nil {
		t.Errorf("no logprobs are %v", got)
	}
}
