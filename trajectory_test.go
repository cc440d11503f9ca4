package art_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

func TestNewTrajectory(t *testing.T) {
	before := time.Now()
	tr := art.NewTrajectory(art.System("s"))
	tr.Add(art.User("u"), art.Assistant("a"))
	if tr.Start.Before(before.Add(-time.Second)) || time.Now().Before(tr.Start.Add(-time.Second)) ||
		tr.Start.Location() != time.UTC {
		t.Errorf("start is %v", tr.Start)
	}
	if len(tr.Messages) != 3 || tr.Duration != 0 {
		t.Errorf("%d messages, duration %v", len(tr.Messages), tr.Duration)
	}
	tr.Start = tr.Start.Add(-time.Hour)
	if tr.Finish(); tr.Duration < time.Hour || tr.Duration > 2*time.Hour {
		t.Errorf("duration is %v", tr.Duration)
	}
}

// sampled returns an assistant message with a sample of a step.
func sampled(content string, step int) art.Message {
	m := art.Assistant(content)
	m.Sample = &art.Sample{PromptIDs: []int32{1}, IDs: []int32{2}, Logprobs: []float32{-0.5}, Step: step}
	return m
}

func TestTrajectory_Samples(t *testing.T) {
	tr := art.NewTrajectory(art.User("u"), sampled("a", 4), art.Assistant("given"), sampled("b", 2))
	tr.AdditionalHistories = []art.History{
		{Messages: []art.Message{art.User("u")}}, {Messages: []art.Message{sampled("c", 3)}},
	}
	if hs := tr.Histories(); len(hs) != 3 || hs[0] != &tr.History || hs[2] != &tr.AdditionalHistories[1] {
		t.Errorf("histories: %v", hs)
	}
	var steps []int
	for _, s := range tr.Samples() {
		steps = append(steps, s.Step)
	}
	wantEqual(t, "steps of samples", steps, []int{4, 2, 3})
	first, last, ok := tr.PolicySteps()
	wantEqual(t, "policy steps", []any{first, last, ok}, []any{2, 4, true})
	if _, _, ok := new(art.Trajectory).PolicySteps(); ok {
		t.Error("policy steps of nothing")
	}
}

// whole returns a group in which every field is set.
func whole() *art.TrajectoryGroup {
	tr := &art.Trajectory{
		History:             art.History{Messages: []art.Message{art.User("u"), sampled("a", 1)}, Tools: []art.Tool{{Name: "f", Parameters: json.RawMessage(`{}`)}}},
		AdditionalHistories: []art.History{{Messages: []art.Message{{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: "1"}}}}}},
		Reward:              0.1,
		Metrics:             map[string]float64{"turns": 2},
		Metadata:            map[string]any{"int": 3, "float": 3.0, "bool": true, "nil": nil, "text": "3"},
		Logs:                []string{"line"},
		Start:               time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC),
		Duration:            1500 * time.Millisecond,
	}
	s := tr.Messages[1].Sample
	s.Sampled, s.Forced, s.Finish = []float32{-0.25}, []bool{true}, art.FinishLength
	s.Settings = art.Sampling{
		Temperature: 0.7, TopP: 0.9, TopK: 4, MaxTokens: 5, Stop: []string{"."}, Seed: math.MaxUint64,
		MinP: 0.1, RepetitionPenalty: 1.2, PresencePenalty: -1, FrequencyPenalty: 0.3,
		LogitBias: map[int32]float64{7: -100, 12: 0.5}, MinTokens: 2, StopTokenIDs: []int32{9},
	}
	return &art.TrajectoryGroup{
		Trajectories: []*art.Trajectory{tr},
		Failures:     []art.Failure{{Scenario: 1, Attempt: 2, Tries: 3, Type: "panic", Message: "m", Stack: "s"}},
		Metrics:      map[string]float64{"judged": 1},
		Metadata:     map[string]any{"level": 2},
		Logs:         []string{"group line"},
	}
}

func TestTrajectoryGroup_GoldenJSON(t *testing.T) {
	const want = `{"trajectories":[{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}],` +
		`"samples":[null,{"prompt_ids":[1],"ids":[2],"logprobs":[-0.5],"sampled":[-0.25],"forced":[true],` +
		`"settings":{"temperature":0.7,"top_p":0.9,"top_k":4,"max_tokens":5,"stop":["."],"seed":18446744073709551615,` +
		`"min_p":0.1,"repetition_penalty":1.2,"presence_penalty":-1,"frequency_penalty":0.3,` +
		`"logit_bias":{"12":0.5,"7":-100},"min_tokens":2,"stop_token_ids":[9]},` +
		`"step":1,"finish":"length"}],` +
		`"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],` +
		`"additional_histories":[{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1",` +
		`"type":"function","function":{"name":"","arguments":""}}]}]}],` +
		`"reward":0.1,"metrics":{"turns":2},"metadata":{"bool":true,"float":3.0,"int":3,"nil":null,"text":"3"},` +
		`"logs":["line"],` +
		`"start":"2025-01-02T03:04:05.000000006Z","duration":1500000000}],` +
		`"failures":[{"scenario":1,"attempt":2,"tries":3,"type":"panic","message":"m","stack":"s"}],` +
		`"metrics":{"judged":1},"metadata":{"level":2},"logs":["group line"]}`
	wantEqual(t, "JSON", encode(t, whole()), want)
	wantEqual(t, "read back", decode[*art.TrajectoryGroup](t, want), whole())
	wantEqual(t, "JSON of nothing", encode(t, art.Trajectory{}), `{"messages":[],"reward":0}`)
	nothing := art.Trajectory{Metrics: map[string]float64{}, Metadata: map[string]any{}}
	wantEqual(t, "nothing, read back", decode[art.Trajectory](t, `{"messages":[],"reward":0}`), nothing)
	wantEqual(t, "unknown fields, nulls",
		decode[art.Trajectory](t, `{"x":1,"messages":null,"samples":null,"metrics":null,"logs":null,"start":null}`), nothing)
	empty := decode[art.Trajectory](t,
		`{"messages":[{"role":"user","content":""}],"samples":[{"logprobs":[ ],"ids":[1],"step":2}]}`)
	wantEqual(t, "empty list", empty.Messages[0].Sample, &art.Sample{IDs: []int32{1}, Step: 2})
	one := nothing
	one.Reward = 1
	holes := art.TrajectoryGroup{
		Trajectories: []*art.Trajectory{nil, &one}, Metrics: nothing.Metrics, Metadata: nothing.Metadata,
	}
	wantEqual(t, "nil trajectory", decode[art.TrajectoryGroup](t, encode(t, holes)), holes)
	history := whole().Trajectories[0].History
	wantEqual(t, "history", decode[art.History](t, encode(t, history)), history)
}

func TestTrajectory_StartIsUTC(t *testing.T) {
	start := time.Date(2025, 1, 2, 3, 4, 5, 6, time.FixedZone("X", 3600))
	got := decode[art.Trajectory](t, encode(t, art.Trajectory{Start: start})).Start
	if !got.Equal(start) || got.Location() != time.UTC {
		t.Errorf("start %v became %v", start, got)
	}
}

// randomFloat returns a number, often a special one.
func randomFloat(r *rand.Rand) float64 {
	special := []float64{
		0, math.Copysign(0, -1), 1, -3, 0.1, 1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 53, math.Inf(1), math.Inf(-1),
	}
	switch r.IntN(3) {
	case 0:
		return special[r.IntN(len(special))]
	case 1:
		return r.NormFloat64()
	}
	for {
		if x := math.Float64frombits(r.Uint64()); !math.IsNaN(x) {
			return x
		}
	}
}

// randomList returns nil or n values.
func randomList[T any](r *rand.Rand, n int, value func() T) []T {
	var out []T
	for range n * r.IntN(2) {
		out = append(out, value())
	}
	return out
}

// randomMap returns a map, which may be empty: nil is read back as such.
func randomMap[T any](r *rand.Rand, value func() T) map[string]T {
	out := map[string]T{}
	if r.IntN(2) == 0 {
		return out
	}
	out[""] = value()
	for range r.IntN(4) {
		out[randomText(r)] = value()
	}
	return out
}

func randomSample(r *rand.Rand) *art.Sample {
	n := 1 + r.IntN(5)
	id := func() int32 { return int32(r.Uint32()) }
	logprob := func() float32 {
		if r.IntN(4) == 0 {
			return float32(math.Inf(-1))
		}
		return -math.Float32frombits(r.Uint32N(0x7f800000))
	}
	return &art.Sample{
		PromptIDs: randomList(r, n+2, id), IDs: randomList(r, n, id), Logprobs: randomList(r, n, logprob), Sampled: randomList(r, n, logprob),
		Forced: randomList(r, n, func() bool { return r.IntN(2) == 0 }), Step: r.IntN(100), Finish: randomText(r),
		Settings: art.Sampling{Temperature: r.Float64(), TopP: r.Float64(), TopK: r.IntN(9), MaxTokens: r.IntN(9), Seed: r.Uint64(),
			Stop: randomList(r, 2, func() string { return randomText(r) }), MinP: r.Float64(), RepetitionPenalty: r.Float64(),
			PresencePenalty: -r.Float64(), LogitBias: map[int32]float64{r.Int32(): r.NormFloat64()},
			StopTokenIDs: randomList(r, 2, id)},
	}
}

func randomHistory(r *rand.Rand) art.History {
	var h art.History
	for range r.IntN(4) {
		m := randomMessage(r)
		if r.IntN(2) == 0 {
			m.Sample = randomSample(r)
		}
		h.Add(m)
	}
	h.Tools = randomList(r, 2, func() art.Tool {
		tool := art.Tool{Name: randomText(r), Description: randomText(r)}
		if r.IntN(2) == 0 {
			tool.Parameters = json.RawMessage(fmt.Sprintf(`{"z":%d,"a":"<\\u003c>"}`, r.IntN(99)))
		}
		return tool
	})
	return h
}

func randomTrajectory(r *rand.Rand) *art.Trajectory {
	label := func() any {
		return []any{nil, r.IntN(2) == 0, r.Int(), -r.IntN(5), randomFloat(r), math.Inf(1), randomText(r), "NaN",
			"5"}[r.IntN(9)]
	}
	return &art.Trajectory{
		History: randomHistory(r), AdditionalHistories: randomList(r, 2, func() art.History { return randomHistory(r) }),
		Reward: randomFloat(r), Metrics: randomMap(r, func() float64 { return randomFloat(r) }), Metadata: randomMap(r, label),
		Logs:  randomList(r, 2, func() string { return randomText(r) }),
		Start: time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC(), Duration: time.Duration(r.Int64()),
	}
}

func TestTrajectoryGroup_RoundTripProperty(t *testing.T) {
	const seed = 5
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		g := &art.TrajectoryGroup{
			Trajectories: randomList(r, 3, func() *art.Trajectory { return randomTrajectory(r) }),
			Failures: randomList(r, 2, func() art.Failure {
				return art.Failure{Scenario: r.IntN(9), Message: randomText(r), Stack: randomText(r)}
			}),
			Metrics:  randomMap(r, func() float64 { return randomFloat(r) }),
			Metadata: randomMap(r, func() any { return r.IntN(9) }),
			Logs:     randomList(r, 2, func() string { return randomText(r) }),
		}
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode[*art.TrajectoryGroup](t, string(text)); !reflect.DeepEqual(got, g) {
			t.Fatalf("got  %s\nwant %s", encode(t, got), encode(t, g))
		}
	}
}

// NaN is not equal to itself, so the JSON is compared.
func TestTrajectory_NaN(t *testing.T) {
	nan := math.NaN()
	tr := art.NewTrajectory(sampled("a", 0))
	tr.Reward, tr.Metrics, tr.Metadata = nan, map[string]float64{"m": nan}, map[string]any{"float": nan, "text": "NaN"}
	tr.Messages[0].Sample.Logprobs = []float32{float32(nan), float32(math.Inf(1)), float32(math.Inf(-1)), 0}
	text := encode(t, tr)
	for _, part := range []string{`"reward":"NaN"`, `{"m":"NaN"}`, `{"float":{"float":"NaN"},"text":"NaN"}`,
		`["NaN","Infinity","-Infinity",0]`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not contain %s", text, part)
		}
	}
	got := decode[art.Trajectory](t, text)
	wantEqual(t, "written again", encode(t, got), text)
	if !math.IsNaN(got.Reward) || !math.IsNaN(got.Metadata["float"].(float64)) || got.Metadata["text"] != "NaN" {
		t.Errorf("reward %v, metadata %v", got.Reward, got.Metadata)
	}
}

func TestTrajectory_UnstorableJSON(t *testing.T) {
	_, err := json.Marshal(art.Trajectory{Metadata: map[string]any{"k": []string{}}})
	if err == nil || !strings.Contains(err.Error(), "[]string, want string, bool, int, float64 or nil") {
		t.Errorf("error is %v", err)
	}
	_, err = json.Marshal(art.Trajectory{History: art.History{Messages: []art.Message{{}}}})
	wantErr(t, err, art.ErrInvalid, "role is empty")
}

func TestTrajectory_DamagedJSON(t *testing.T) {
	cases := []struct{ text, say string }{
		{`[]`, "is an array, want an object"},
		{`{"messages":5}`, "messages is a number, want an array"},
		{`{"messages":[{"role":"user"},{}]}`, "messages[1].role is missing"},
		{`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":1}}]}]}`, "messages[0].tool_calls[0].function.name is a number"},
		{`{"tools":[{}]}`, "tools[0].function is missing"},
		{`{"messages":[{"role":"user"}],"samples":[null,null]}`, "samples has 2 elements for 1 messages"},
		{`{"messages":[{"role":"user"}],"samples":[5]}`, "samples[0] is a number"},
		{`{"messages":[{"role":"user"}],"samples":[{"ids":["a"]}]}`, "samples[0].ids"},
		{`{"messages":[{"role":"user"}],"samples":[{"logprobs":[0,null]}]}`, "samples[0].logprobs[1] is null, want a number"},
		{`{"messages":[{"role":"user"}],"samples":[{"logprobs":[0,"x"]}]}`, `samples[0].logprobs[1] is "x", want a number`},
		{`{"messages":[{"role":"user"}],"samples":[{"logprobs":[1e39]}]}`, "samples[0].logprobs[0] is 1e39, which is no float32"},
		{`{"messages":[{"role":"user"}],"samples":[{"sampled":5}]}`, "samples[0].sampled is a number, want an array"},
		{`{"additional_histories":[{},{"messages":[{}]}]}`, "additional_histories[1].messages[0].role is missing"},
		{`{"additional_histories":[{"samples":[{}]}]}`, "additional_histories[0].samples has 1 elements"},
		{`{"reward":"high"}`, `reward is "high", want a number`},
		{`{"reward":1e999}`, "reward is 1e999, which is no float64"},
		{`{"metrics":{"a":1,"b":true}}`, `metrics["b"] is true, want a number`},
		{`{"metadata":{"k":[1]}}`, `metadata["k"] is an array`},
		{`{"metadata":{"k":{"float":true}}}`, `metadata["k"] is true, want a number`},
		{`{"metadata":{"k":99999999999999999999}}`, `metadata["k"] is 99999999999999999999, which is no int`},
		{`{"logs":[1]}`, "logs"},
		{`{"start":"yesterday"}`, "start"},
		{`{"duration":1.5}`, "duration"},
	}
	for _, c := range cases {
		var tr art.Trajectory
		wantErr(t, json.Unmarshal([]byte(c.text), &tr), art.ErrCorrupt, "read trajectory", c.say)
		var g art.TrajectoryGroup
		err := json.Unmarshal([]byte(`{"trajectories":[null,`+c.text+`]}`), &g)
		say := "trajectories[1]." + c.say
		if !strings.Contains(err.Error(), say) && !strings.Contains(err.Error(), "trajectories[1] "+c.say) {
			t.Errorf("error %q does not say %q", err, say)
		}
	}
	var g art.TrajectoryGroup
	wantErr(t, json.Unmarshal([]byte(`{"trajectories":{}}`), &g), art.ErrCorrupt, "read group",
		"trajectories is an object, want an array")
	wantErr(t, json.Unmarshal([]byte(`{"failures":[5]}`), &g), art.ErrCorrupt, "failures")
	var h art.History
	wantErr(t, json.Unmarshal([]byte(`{"messages":[{}]}`), &h), art.ErrCorrupt, "read history",
		"messages[0].role is missing")
}

func TestTrajectoryGroup_Clone(t *testing.T) {
	g, want := whole(), whole()
	c := g.Clone()
	wantEqual(t, "clone", c, want)
	tr := c.Trajectories[0]
	tr.Messages[0].Content, tr.Tools[0].Name, tr.Tools[0].Parameters[0] = "x", "x", '['
	tr.AdditionalHistories[0].Messages[0].ToolCalls[0].ID = "x"
	tr.Metrics["turns"], tr.Metadata["int"], tr.Logs[0], tr.Reward = 9, 9, "x", 9
	c.Failures[0].Type, c.Metrics["judged"], c.Metadata["level"], c.Logs[0] = "x", 9, 9, "x"
	wantEqual(t, "original after the clone was changed", g, want)
	if (*art.TrajectoryGroup)(nil).Clone() != nil || (*art.Trajectory)(nil).Clone() != nil {
		t.Error("clone of nil")
	}
	wantEqual(t, "clone of nothing", new(art.Trajectory).Clone(), new(art.Trajectory))
}

// JSON that can be read is written in a form that reads and writes the same.
func FuzzTrajectoryGroup(f *testing.F) {
	text, err := json.Marshal(whole())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"trajectories":[null,{"reward":"NaN","metadata":{"a":-0,"b":1e5,"c":{"float":"-Infinity"}},` +
		`"duration":5}]}`))
	f.Add([]byte(`{"trajectories":[{"messages":[{"role":"x","content":[]}],"samples":[{"logprobs":[ "NaN" , 0.1 ]}],` +
		`"start":"2025-01-02T03:04:05+01:00"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var g, again art.TrajectoryGroup
		if json.Unmarshal(data, &g) != nil {
			return
		}
		first, err := json.Marshal(g)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("written first %s\nthen          %s (%v)", first, second, err)
		}
	})
}

func TestHistory_Breaks(t *testing.T) {
	reply := func(prompt, ids []int32) art.Message {
		return art.Message{Role: art.RoleAssistant, Sample: &art.Sample{PromptIDs: prompt, IDs: ids}}
	}
	h := art.History{Messages: []art.Message{
		art.User("a"), reply([]int32{1, 2}, []int32{3, 4}),
		art.User("b"), art.Assistant("not sampled"), reply([]int32{1, 2, 3, 4, 5}, []int32{6}),
		art.User("c"), reply([]int32{1, 2, 3, 9, 5, 6}, []int32{7}), // an id of the first reply is gone
		art.User("d"), reply([]int32{1, 2, 3, 9, 5, 6, 7}, nil),
		art.User("e"), reply([]int32{1, 2}, []int32{8}), // shorter
	}}
	if got := h.Breaks(); !slices.Equal(got, []int{6, 10}) {
		t.Errorf("breaks %v, want [6 10]", got)
	}
	if got := new(art.History).Breaks(); got != nil {
		t.Errorf("breaks %v of no messages", got)
	}
}

// Metrics of a new trajectory, and of every trajectory and group that this package makes, are not nil.
func TestMaps_AreMade(t *testing.T) {
	m := registered(t, counting(), nil)
	recorded := record(t, func(ctx context.Context) error { return complete(ctx, m, art.User("u")) })
	group, err := art.Gather(t.Context(), numbers(1),
		func(context.Context, int) (*art.Trajectory, error) { return art.NewTrajectory(), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := art.GatherGroups(t.Context(), numbers(1),
		func(context.Context, int) (*art.Trajectory, error) { return art.NewTrajectory(), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := decode[art.Trajectory](t, `{"messages":[],"reward":0}`)
	readGroup := decode[art.TrajectoryGroup](t, `{"trajectories":[{"messages":[],"reward":0}]}`)
	for _, tr := range []*art.Trajectory{art.NewTrajectory(), art.NewTrajectory().Clone(), recorded, &read,
		readGroup.Trajectories[0]} {
		tr.Metrics["x"], tr.Metadata["x"] = 1, 1
	}
	for _, g := range []*art.TrajectoryGroup{group, groups[0], groups[0].Clone(), &readGroup} {
		g.Metrics["x"], g.Metadata["x"] = 1, 1
	}
}
