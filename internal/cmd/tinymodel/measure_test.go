package main

import (
	"context"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/model/tiny"
)

// TestMeasure_Committed: the built-in model calls tools that it has never seen. The figure of docs/log is of 1,000
// calls:
//
//	go run ./internal/cmd/tinymodel -measure 1000
func TestMeasure_Committed(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred replies")
	}
	_, config := tiny.Tokenizer()
	skipOldModel(t, config)
	_, right, err := measure(context.Background(), "../../../model/tiny", heldOutCalls(heldOutSeed, 200))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f %% exact", 100*share(right))
	if share(right) < 0.9 {
		t.Errorf("%.1f %% of 200 held-out calls are exact, want at least 90 %%", 100*share(right))
	}
}

func TestExact(t *testing.T) {
	want := art.ToolCall{Name: "get", Arguments: `{"id": 4, "to": "a"}`}
	for _, c := range []struct {
		calls []art.ToolCall
		want  bool
	}{
		{nil, false},
		{[]art.ToolCall{{Name: "get", Arguments: `{"to":"a","id":4}`}}, true},
		{[]art.ToolCall{{Name: "get", Arguments: `{"id": "4", "to": "a"}`}}, false},
		{[]art.ToolCall{{Name: "got", Arguments: want.Arguments}}, false},
		{[]art.ToolCall{{Name: "get", Arguments: `{"id": 4}`}}, false},
		{[]art.ToolCall{want, want}, false},
	} {
		if got := exact(c.calls, want); got != c.want {
			t.Errorf("%v: %v, want %v", c.calls, got, c.want)
		}
	}
}
