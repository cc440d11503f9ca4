package wire

import (
	"math"
	"testing"

	"github.com/goart-dev/art"
)

// TestNewLogprobs_Edges checks values that JSON cannot represent and tokens that are not UTF-8.
func TestNewLogprobs_Edges(t *testing.T) {
	sample := &art.Sample{
		IDs:      []int32{0xC3, 1, 2},
		Logprobs: []float32{float32(math.Inf(-1)), float32(math.NaN()), -0.1},
	}
	got := newLogprobs(sample.IDs, sample.Logprobs, func(id int32) []byte { return []byte{byte(id)} }).Content
	if got[0].Token != "\uFFFD" || got[0].Bytes[0] != 0xC3 {
		t.Errorf("half a character: %+v", got[0])
	}
	for i, want := range []float32{minLogprob, minLogprob, -0.1} {
		if got[i].Logprob != want {
			t.Errorf("logprob %d is %v, want %v", i, got[i].Logprob, want)
		}
	}
}
