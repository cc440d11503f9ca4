package tinkerwire

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// example uses every field of a request.
func example() *ForwardRequest {
	sparse := Tensor{DType: Float32, Shape: []int64{2, 3}, Floats: []float32{1.5, -2, 0.1},
		Rows: []int64{0, 2, 3}, Columns: []int64{0, 2, 1}}
	return &ForwardRequest{
		ModelID: "s:train:0", SeqID: 7, Loss: "ppo", Config: map[string]float64{"clip_low_threshold": 0.5},
		Data: []Datum{
			{Input: NewInput([]int32{1, 2, 3}), Inputs: map[string]Tensor{
				"target_tokens": NewInts([]int64{2, 3, -1}), "advantages": NewFloats([]float32{0, 1.25, -7}),
			}},
			{Input: NewInput([]int32{9, 9}), Inputs: map[string]Tensor{
				"target_tokens": NewInts([]int64{1, 2, 3, 4, 5, 6}, 2, 3), "weights": sparse,
			}},
		},
	}
}

// many are bounds that no test reaches.
var many = Bounds{Data: 1 << 20, Chunks: 1 << 20, Tensors: 1 << 20, Options: 1 << 20}

func TestForwardRequest_RoundTrips(t *testing.T) {
	for _, forwardOnly := range []bool{false, true} {
		want := example()
		want.ForwardOnly = forwardOnly
		got, err := ParseForwardRequest(want.Proto(), many)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("protobuf: %v, %+v, want %+v", err, got, want)
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got = &ForwardRequest{}
		if err := json.Unmarshal(data, got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("JSON: %v, %+v, want %+v", err, got, want)
		}
	}
}

func TestForwardOutput_RoundTrips(t *testing.T) {
	want := &ForwardOutput{Type: "scores", Metrics: map[string]float64{"loss:sum": -1.5}, Outputs: []map[string]Tensor{
		{"logprobs": NewFloats([]float32{-1, -2})}, {"logprobs": NewFloats([]float32{-3, -4, -5})},
	}}
	got, err := ParseForwardOutput(want.Proto())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("protobuf: %v, %+v, want %+v", err, got, want)
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got = &ForwardOutput{}
	if err := json.Unmarshal(data, got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("JSON: %v, %+v, want %+v", err, got, want)
	}
}

func TestSampleOutput_RoundTrips(t *testing.T) {
	top := NewTopLogprobs(3, 2)
	top.IDs[2], top.Logprobs[2] = 5, -0.5
	want := &SampleOutput{
		Sequences: []Sequence{{StopReason: StopLength, Tokens: []int32{1, 2}, Logprobs: []float32{-1, -2}},
			{StopReason: StopStop, Tokens: []int32{3}, Logprobs: []float32{-1}}},
		PromptLogprobs: []float32{float32(math.NaN()), -1, -2}, TopPromptLogprobs: top,
	}
	same := func(got *SampleOutput) bool {
		nan := len(got.PromptLogprobs) == 3 && math.IsNaN(float64(got.PromptLogprobs[0]))
		got.PromptLogprobs[0] = 0
		copied := *want
		copied.PromptLogprobs = []float32{0, -1, -2}
		return nan && reflect.DeepEqual(got.Sequences, copied.Sequences) &&
			reflect.DeepEqual(got.PromptLogprobs, copied.PromptLogprobs)
	}
	got, err := ParseSampleOutput(want.Proto())
	if err != nil || !same(got) || !reflect.DeepEqual(got.TopPromptLogprobs, top) {
		t.Errorf("protobuf: %v, %+v, want %+v", err, got, want)
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got = &SampleOutput{}
	if err := json.Unmarshal(data, got); err != nil || !same(got) {
		t.Errorf("JSON: %v, %s", err, data)
	}
	if got.TopPromptLogprobs.Rows() != 3 || got.TopPromptLogprobs.IDs[1] != 5 {
		t.Errorf("JSON: %+v", got.TopPromptLogprobs)
	}
}

func TestDense_ScattersRows(t *testing.T) {
	sparse := example().Data[1].Inputs["weights"]
	dense, err := sparse.Dense(100)
	if want := []float32{1.5, 0, -2, 0, 0.1, 0}; err != nil || !reflect.DeepEqual(dense.Floats, want) {
		t.Errorf("got %v, %v, want %v", dense.Floats, err, want)
	}
	if _, err := sparse.Dense(5); err == nil {
		t.Error("6 values are more than 5")
	}
	for name, damage := range map[string]func(*Tensor){
		"column":   func(t *Tensor) { t.Columns = []int64{0, 3, 1} },
		"negative": func(t *Tensor) { t.Columns = []int64{0, -1, 1} },
		"rows":     func(t *Tensor) { t.Rows = []int64{0, 2} },
		"offset":   func(t *Tensor) { t.Rows = []int64{0, 4, 3} },
		"shape":    func(t *Tensor) { t.Shape = []int64{1 << 40, 1 << 40} },
	} {
		bad := example().Data[1].Inputs["weights"]
		if damage(&bad); bad.Shape != nil {
			if _, err := bad.Dense(1 << 20); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	}
}

func TestStop_Forms(t *testing.T) {
	for text, want := range map[string]Stop{
		`null`: {}, `[]`: {Set: true, Tokens: []int32{}}, `"a"`: {Set: true, Texts: []string{"a"}},
		`["a","b"]`: {Set: true, Texts: []string{"a", "b"}}, `[3,4]`: {Set: true, Tokens: []int32{3, 4}},
	} {
		var got Stop
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %+v, want %+v", text, err, got, want)
		}
	}
	var got Stop
	if err := json.Unmarshal([]byte(`[1,"a"]`), &got); err == nil {
		t.Errorf("a mixture is %+v", got)
	}
}

// FuzzForwardRequest: what is read can be written and read again.
func FuzzForwardRequest(f *testing.F) {
	f.Add(example().Proto())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseForwardRequest(data, many)
		if err != nil {
			return
		}
		for i := range r.Data {
			for _, input := range r.Data[i].Inputs {
				_, _ = input.Dense(1 << 16) // must not panic
			}
		}
		again, err := ParseForwardRequest(r.Proto(), many)
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Data) != len(r.Data) || again.SeqID != r.SeqID || again.Loss != r.Loss {
			t.Errorf("%+v became %+v", r, again)
		}
	})
}

// FuzzBodies: no body makes a parser panic.
func FuzzBodies(f *testing.F) {
	f.Add([]byte(`{"forward_input":{"data":[{"model_input":{"chunks":[{"type":"encoded_text","tokens":[1]}]},` +
		`"loss_fn_inputs":{"weights":{"data":[1],"dtype":"float32"}}}],"loss_fn":"ppo","loss_fn_config":{"beta":1}}}`))
	f.Add([]byte(`{"type":"sample","sequences":[{"stop_reason":"stop","tokens":[1]}],"prompt_logprobs":[null],` +
		`"topk_prompt_logprobs":[null,[[1,-0.5]]]}`))
	f.Add((&SampleOutput{PromptLogprobs: []float32{1}, TopPromptLogprobs: NewTopLogprobs(1, 2)}).Proto())
	f.Add((&ForwardOutput{Outputs: []map[string]Tensor{{"logprobs": NewFloats([]float32{1})}}}).Proto())
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ParseForwardOutput(data)
		_, _ = ParseSampleOutput(data)
		for _, v := range []any{&ForwardRequest{}, &ForwardOutput{}, &SampleRequest{}, &SampleOutput{}, &Request{}} {
			if json.Unmarshal(data, v) == nil {
				if _, err := json.Marshal(v); err != nil {
					t.Errorf("%T: %v", v, err)
				}
			}
		}
	})
}

// TestParseForwardRequest_Bounds: what is too much is refused before it takes memory, though each element is a few
// bytes.
func TestParseForwardRequest_Bounds(t *testing.T) {
	small := Bounds{Data: 10, Chunks: 10, Tensors: 10, Options: 10}
	const n = 2_000_000
	tensor := appendBytes(appendEntry(nil, 2, "", appendBytes(nil, 2, appendInteger(nil, 3, 1))), 9, nil)
	dims := appendIntegers(appendInteger(nil, 3, 1), 4, slices.Repeat([]int64{1}, n))
	for name, c := range map[string]struct {
		message []byte
		want    string
	}{
		"data":    {bytes.Repeat(appendBytes(nil, 3, nil), n), "more data"},
		"chunks":  {appendBytes(nil, 3, bytes.Repeat(appendBytes(nil, 1, nil), n)), "more chunks"},
		"tensors": {appendBytes(nil, 3, bytes.Repeat(tensor, n/10)), "more tensors"},
		"options": {bytes.Repeat(appendBytes(nil, 5, appendText(nil, 1, "k")), n), "more options"},
		"typed":   {bytes.Repeat(appendBytes(nil, 7, appendText(nil, 1, "k")), n), "more options"},
		"dimensions": {appendBytes(nil, 3, appendEntry(nil, 2, "weights", appendBytes(nil, 2, dims))),
			"more than 16 dimensions"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseForwardRequest(c.message, small)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", name, took)
		}
	}
}
