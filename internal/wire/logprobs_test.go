package wire

import (
	"encoding/json"
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
	got := newLogprobs(sample.IDs, sample.Logprobs, nil, func(id int32) []byte { return []byte{byte(id)} }).Content
	if got[0].Token != "\uFFFD" || got[0].Bytes[0] != 0xC3 {
		t.Errorf("half a character: %+v", got[0])
	}
	for i, want := range []float32{minLogprob, minLogprob, -0.1} {
		if got[i].Logprob != want {
			t.Errorf("logprob %d is %v, want %v", i, got[i].Logprob, want)
		}
	}
}

// TestNewLogprobs_Likeliest: the likeliest tokens come with their texts.
func TestNewLogprobs_Likeliest(t *testing.T) {
	letter := func(id int32) []byte { return []byte{byte(id)} }
	sample := &art.Sample{IDs: []int32{'a', 'b'}, Logprobs: []float32{-1, -2}}
	top := [][]art.TokenLogprob{{{ID: 'x', Logprob: -0.5, Rank: 1}, {ID: 'a', Logprob: -1, Rank: 2}}, {}}
	got, err := json.Marshal(newLogprobs(sample.IDs, sample.Logprobs, top, letter))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"content":[{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[` +
		`{"token":"x","logprob":-0.5,"bytes":[120]},{"token":"a","logprob":-1,"bytes":[97]}]},` +
		`{"token":"b","logprob":-2,"bytes":[98],"top_logprobs":[]}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
