package runs

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// seeded returns a random source and prints its seed. ART_SEED replays one.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ART_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("replay with ART_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// generator makes domain values that use everything the types allow.
type generator struct{ *rand.Rand }

// list returns nil, an empty list or up to most elements.
func list[T any](g generator, most int, element func() T) []T {
	if g.IntN(4) == 0 {
		return nil
	}
	out := []T{}
	for range g.IntN(most + 1) {
		out = append(out, element())
	}
	return out
}

// dict is list for maps, but never nil, which is read as an empty map.
func dict[T any](g generator, most int, element func() T) map[string]T {
	out := map[string]T{}
	for range g.IntN(most + 1) {
		out[pick(g, "a", "b/c", "", "ключ", "quote\"", "<&>\u2028", "long name")] = element()
	}
	return out
}

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

func (g generator) text() string {
	return pick(g, "", "hello", "a\nb\x00c", "żółw 🐢", "NaN", "cut \xf0\x9f", "\xff", "\uFFFD", "<a href=\"&\">",
		fmt.Sprint(g.Uint64()))
}

func (g generator) float() float64 {
	return pick(g, 0, 1, -1, 0.1, math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21,
		-123456789,
		math.Copysign(0, -1), g.NormFloat64())
}

func (g generator) label() any {
	return pick[any](g, nil, true, false, 0, -5, math.MaxInt, math.MinInt, g.text(), g.float(), 3.0)
}

func (g generator) ids() []int32 { return list(g, 40, func() int32 { return int32(g.Uint32()) }) }

func (g generator) logprobs() []float32 {
	return list(g, 40, func() float32 {
		return pick(g, 0, float32(-g.ExpFloat64()), float32(math.Inf(-1)), math.SmallestNonzeroFloat32)
	})
}

func (g generator) sample() *art.Sample {
	if g.IntN(2) == 0 {
		return nil
	}
	sample := &art.Sample{
		PromptIDs: g.ids(), IDs: g.ids(), Logprobs: g.logprobs(), Sampled: g.logprobs(),
		Forced: list(g, 40, func() bool { return g.IntN(2) == 0 }),
		Settings: art.Sampling{
			Temperature: g.float(), TopP: g.float(), TopK: g.IntN(100), MaxTokens: g.Int(), Stop: list(g, 3, g.text),
			Seed: g.Uint64(),
		},
		Step: g.IntN(1000), Finish: pick(g, art.FinishStop, art.FinishLength, ""),
	}
	if g.IntN(2) == 0 {
		g.shape(&sample.Settings)
	}
	return sample
}

// shape sets settings that are off by default.
func (g generator) shape(s *art.Sampling) {
	s.MinP, s.RepetitionPenalty, s.PresencePenalty, s.FrequencyPenalty = g.float(), g.float(), g.float(), g.float()
	s.MinTokens, s.StopTokenIDs = g.Int(), g.ids()
	if g.IntN(2) == 0 {
		s.AllowedTokenIDs, s.BadWords, s.IgnoreEOS = g.ids(), list(g, 3, g.text), g.IntN(2) == 0
	}
	s.LogitBias = pick(g, nil, map[int32]float64{}, map[int32]float64{1 << 30: g.float(), 5: g.float(), 1: 0})
	s.ToolChoice = pick(g, nil, &art.ToolChoice{Mode: art.ToolNamed, Name: "<f>"})
	s.ResponseFormat = pick(g, nil,
		&art.ResponseFormat{Type: art.FormatJSONSchema, Name: "n", Schema: json.RawMessage(`{"enum":["a",1]}`)},
		&art.ResponseFormat{Type: art.FormatChoice, Choice: []string{"", "<b>"}})
}

// wireMessages are messages of which the Go fields hold a part.
var wireMessages = []string{
	`{"content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:,"}}],"role":"user","x":{"b":1,"a":1.50}}`,
	`{"role":"assistant","content":null,"tool_calls":[{"type":"function","id":"c1","function":{"arguments":"{\"a\": 1","name":"f","q":0},"index":0}]}`,
	`{"role":"assistant","refusal":null,"content":"","tool_calls":[]}`,
	`{"role":"assistant","content":"plain"}`,
}

func (g generator) message() art.Message {
	if g.IntN(3) == 0 {
		var m art.Message
		if err := json.Unmarshal([]byte(pick(g, wireMessages...)), &m); err != nil {
			panic(err)
		}
		m.Sample = g.sample()
		return m
	}
	return art.Message{
		Role: pick(g, art.RoleUser, art.RoleAssistant, art.RoleTool, ""), Content: g.text(), Reasoning: g.text(),
		ToolCalls: list(g, 3,
			func() art.ToolCall { return art.ToolCall{ID: g.text(), Name: g.text(), Arguments: g.text()} }),
		ToolCallID: g.text(), Name: g.text(), Sample: g.sample(),
	}
}

func (g generator) tool() art.Tool {
	if g.IntN(3) == 0 {
		var t art.Tool
		wire := `{"function":{"strict":true,"parameters":{"z":1,"a":{}},"name":"f"},"type":"function","cache":{"x":1}}`
		if err := json.Unmarshal([]byte(wire), &t); err != nil {
			panic(err)
		}
		return t
	}
	return art.Tool{
		Name: g.text(), Description: g.text(),
		Parameters: pick(g, nil, json.RawMessage{}, json.RawMessage(`{"b": 1,  "a":2}`), json.RawMessage("\xff not JSON")),
	}
}

func (g generator) history() art.History {
	return art.History{Messages: list(g, 5, g.message), Tools: list(g, 2, g.tool)}
}

func (g generator) trajectory() *art.Trajectory {
	return &art.Trajectory{
		History: g.history(), AdditionalHistories: list(g, 3, g.history),
		Reward: g.float(), Metrics: dict(g, 4, g.float), Metadata: dict(g, 4, g.label), Logs: list(g, 3, g.text),
		Start:    pick(g, time.Time{}, time.Unix(1700000000, 123456789).UTC(), time.Unix(-1<<40, 1).UTC()),
		Duration: time.Duration(g.Int64()),
	}
}

func (g generator) failure() art.Failure {
	return art.Failure{Scenario: g.Int(), Attempt: g.IntN(9), Tries: -1, Type: g.text(), Message: g.text(),
		Stack: g.text()}
}

func (g generator) group() *art.TrajectoryGroup {
	return &art.TrajectoryGroup{
		Trajectories: list(g, 4, g.trajectory), Failures: list(g, 2, g.failure),
		Metrics: dict(g, 4, g.float), Metadata: dict(g, 4, g.label), Logs: list(g, 3, g.text),
	}
}

func (g generator) groups(n int) []*art.TrajectoryGroup {
	groups := make([]*art.TrajectoryGroup, n)
	for i := range groups {
		groups[i] = g.group()
	}
	return groups
}
