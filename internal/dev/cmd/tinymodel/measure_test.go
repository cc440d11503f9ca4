package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestMeasure_Committed: the built-in model calls tools that it has never seen. The figure of docs/log is of 1,000
// calls:
//
//	go run ./internal/dev/cmd/tinymodel -measure 1000
func TestMeasure_Committed(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred replies")
	}
	_, right, err := measure(context.Background(), "../../../../model/tiny", heldOutCalls(heldOutSeed, 100))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f %% exact", 100*share(right))
	if share(right) < 0.9 {
		t.Errorf("%.1f %% of 100 held-out calls are exact, want at least 90 %%", 100*share(right))
	}
}

func TestExact(t *testing.T) {
	want := art.ToolCall{Name: "get", Arguments: `{"id": 4, "to": "a"}`}
	for _, c := range []struct {
		calls   []art.ToolCall
		mistake string // "" for an exact call
	}{
		{nil, "0 calls"},
		{[]art.ToolCall{{Name: "get", Arguments: `{"to":"a","id":4}`}}, ""},
		{[]art.ToolCall{{Name: "get", Arguments: `{"id": "4", "to": "a"}`}}, "another value"},
		{[]art.ToolCall{{Name: "got", Arguments: want.Arguments}}, "another tool"},
		{[]art.ToolCall{{Name: "get", Arguments: `{"id": 4}`}}, "number of arguments"},
		{[]art.ToolCall{{Name: "get", Arguments: `{"id": 4, "from": "a"}`}}, "another parameter"},
		{[]art.ToolCall{{Name: "get", Arguments: `{"id": 4, "to": "a"`}}, "no JSON object"},
		{[]art.ToolCall{want, want}, "2 calls"},
	} {
		got := exact(c.calls, want)
		if got != (c.mistake == "") {
			t.Errorf("%v: %v, want %v", c.calls, got, !got)
		}
		if !got {
			require.Equal(t, c.mistake, mistake(c.calls, want), "%v", c.calls)
		}
	}
}
