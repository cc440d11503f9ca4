package local

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/trainset"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
)

// The tokens of the built-in model around reasoning, and a bias that keeps it from reasoning.
var thinkOpen, thinkClose = tinyToken("<think>"), tinyToken("</think>")

var noReasoning = map[int32]float64{thinkOpen: -100}

// tinyToken is the id of a token of the built-in model.
func tinyToken(token string) int32 {
	tok, err := tokenizer.New(tiny.Tokenizer())
	if err != nil {
		panic(err)
	}
	id, ok := tok.TokenID(token)
	if !ok {
		panic("the built-in model has no token " + token)
	}
	return id
}

// roomy is the built-in model with room for the description of tools.
func roomy(t *testing.T) (*Backend, *art.Model) {
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Slots: 2, Context: 1024, Progress: io.Discard})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	return b, m
}

// anySchema is a random schema of bounded replies.
func anySchema(rng *rand.Rand, depth int) map[string]any {
	pick := func(of ...map[string]any) map[string]any { return of[rng.IntN(len(of))] }
	if depth == 0 {
		return pick(
			map[string]any{"type": "boolean"}, map[string]any{"type": "null"}, map[string]any{"const": "fixed"},
			map[string]any{"type": "integer", "minimum": -5, "maximum": 120}, map[string]any{"enum": []any{"red", "green", 7}},
			map[string]any{"type": "string", "maxLength": 5}, map[string]any{"type": "string", "pattern": "^[a-c]{2}-[0-9]$"},
		)
	}
	list := map[string]any{"type": "array", "items": anySchema(rng, depth-1), "minItems": 1, "maxItems": 2}
	properties, required := map[string]any{}, []string{}
	for i := range 1 + rng.IntN(3) {
		name := fmt.Sprintf("key%d", i)
		properties[name] = anySchema(rng, rng.IntN(depth))
		if rng.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	object := map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
	return pick(object, object, list, map[string]any{"anyOf": []any{anySchema(rng, depth-1), object}})
}

// requireValid checks a document by a schema, with another implementation.
func requireValid(t *testing.T, schema json.RawMessage, document string) {
	t.Helper()
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(schema, &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal([]byte(document), &value), "%s", document)
	require.NoError(t, resolved.Validate(value), "%s is not what %s allows", document, schema)
}

// requireScores checks that recorded logprobs are those of a scoring pass bit for bit, and what a grammar adds to them.
func requireScores(t *testing.T, b *Backend, m *art.Model, s *art.Sample) {
	t.Helper()
	scores, _, err := b.Logprobs(t.Context(), m, slices.Concat(s.PromptIDs, s.IDs))
	require.NoError(t, err)
	require.Equal(t, scores[len(s.PromptIDs)-1:], s.Logprobs)
	require.Len(t, s.Sampled, len(s.IDs))
	for i, forced := range s.Forced {
		require.True(t, !forced || s.Sampled[i] == 0, "token %d is forced with a logprob of %v", i, s.Sampled[i])
	}
}

// TestComplete_RandomSchemas: every reply that ends validates against its schema, its logprobs are those of a scoring
// pass, and its pieces are the reply.
func TestComplete_RandomSchemas(t *testing.T) {
	b, m := roomy(t)
	rng := seeded(t)
	ended := 0
	for range 24 {
		schema, err := json.Marshal(anySchema(rng, 2))
		require.NoError(t, err)
		opts := anySettings(rng)
		opts.Stop, opts.StopTokenIDs, opts.MinTokens, opts.MaxTokens = nil, nil, nil, new(300)
		opts.AllowedTokenIDs, opts.BadWords = nil, nil // they may leave no token
		opts.LogitBias = noReasoning
		opts.ResponseFormat = &art.ResponseFormat{Type: art.FormatJSONSchema, Schema: schema}
		r, err := m.Complete(t.Context(), ask("Tell me."), opts)
		require.NoError(t, err, "%s", schema)
		requireScores(t, b, m, r.Message.Sample)
		text := ""
		_, err = m.Stream(t.Context(), ask("Tell me."), opts, func(p art.Piece) error { text += p.Content; return nil })
		require.NoError(t, err)
		require.Equal(t, r.Message.Content, text)
		if r.Finish == art.FinishStop {
			ended++
			requireValid(t, schema, r.Message.Content)
		}
	}
	require.Greater(t, ended, 18)
}

// TestSample_RestrictedDistribution: the distribution over the tokens that a grammar allows is the policy's,
// renormalised: by the recorded logprobs, and by the counts of many samples.
func TestSample_RestrictedDistribution(t *testing.T) {
	b, m := roomy(t)
	prompt, err := b.Encode(t.Context(), m, "What is", false)
	require.NoError(t, err)
	letters := []string{"a", "b", "c", "e", "s", "t", "x"}
	policy := map[int32]float64{} // logprobs of the allowed tokens
	for _, letter := range letters {
		ids, err := b.Encode(t.Context(), m, letter, false)
		require.NoError(t, err)
		require.Len(t, ids, 1, "%q is not one token", letter)
		scores, _, err := b.Logprobs(t.Context(), m, slices.Concat(prompt, ids))
		require.NoError(t, err)
		policy[ids[0]] = float64(scores[len(scores)-1])
	}
	for _, temperature := range []float64{1, 1.7} {
		total := 0.0
		for _, logprob := range policy {
			total += math.Exp(logprob / temperature)
		}
		const draws = 300
		counts := map[int32]int{}
		for seed := range uint64(draws) {
			r, err := m.Sample(t.Context(), prompt, &art.ChatOptions{
				Seed: &seed, Temperature: &temperature, MaxTokens: new(1),
				ResponseFormat: &art.ResponseFormat{Type: art.FormatChoice, Choice: letters},
			}, nil)
			require.NoError(t, err)
			s := r.Message.Sample
			require.Len(t, s.IDs, 1)
			require.Contains(t, policy, s.IDs[0], "%q is not allowed", r.Message.Content)
			want := policy[s.IDs[0]]/temperature - math.Log(total)
			require.InDelta(t, want, s.Sampled[0], 1e-4)
			counts[s.IDs[0]]++
		}
		chi := 0.0
		for id, logprob := range policy {
			expected := draws * math.Exp(logprob/temperature) / total
			if expected < 5 {
				continue // the sum is not that distribution with such
			}
			chi += (float64(counts[id]) - expected) * (float64(counts[id]) - expected) / expected
		}
		// 6 degrees of freedom exceed it once in 10,000.
		require.Less(t, chi, 27.9, "chi squared of %v at temperature %v", counts, temperature)
	}
}

// TestComplete_Formats: JSON objects, expressions and choices hold for chats and for prompts of ids.
func TestComplete_Formats(t *testing.T) {
	b, m := roomy(t)
	object := func(s string) bool { return strings.HasPrefix(s, "{") && json.Valid([]byte(s)) }
	expression := regexp.MustCompile(`^[0-9]{3}-[x-z]+!$`)
	choices := []string{"yes indeed", "no", "no way"}
	for seed := range uint64(6) {
		for _, c := range []struct {
			format art.ResponseFormat
			holds  func(string) bool
		}{
			{art.ResponseFormat{Type: art.FormatJSONObject}, object},
			{art.ResponseFormat{Type: art.FormatRegex, Regex: `[0-9]{3}-[x-z]{1,9}!`}, expression.MatchString},
			{art.ResponseFormat{Type: art.FormatChoice, Choice: choices}, func(s string) bool { return slices.Contains(choices, s) }},
		} {
			opts := &art.ChatOptions{Seed: &seed, MaxTokens: new(150), ResponseFormat: &c.format, LogitBias: noReasoning}
			r, err := m.Complete(t.Context(), ask("What is 7+5?"), opts)
			require.NoError(t, err)
			requireScores(t, b, m, r.Message.Sample)
			again, err := m.Sample(t.Context(), r.Message.Sample.PromptIDs, opts, nil)
			require.NoError(t, err)
			require.Equal(t, r.Message.Sample.IDs, again.Message.Sample.IDs)
			require.True(t, r.Finish == art.FinishLength || c.holds(r.Message.Content), "%v: %q", c.format, r.Message.Content)
			require.True(t, r.Finish == art.FinishStop || c.format.Type == art.FormatJSONObject)
		}
	}
}

// TestComplete_ForcedTools: a required or named tool is called, with arguments that its parameters allow.
func TestComplete_ForcedTools(t *testing.T) {
	b, m := roomy(t)
	rng := seeded(t)
	for i := range 12 {
		var tools []art.Tool
		for _, name := range []string{"first", "second"} {
			object := map[string]any{
				"type": "object", "properties": map[string]any{"x": anySchema(rng, 1), "y": anySchema(rng, 0)},
				"required": []string{"y"}, "additionalProperties": false,
			}
			schema, err := json.Marshal(object)
			require.NoError(t, err)
			tools = append(tools, art.Tool{Name: name, Parameters: schema})
		}
		choice := &art.ToolChoice{Mode: art.ToolRequired}
		if i%2 == 0 {
			choice = &art.ToolChoice{Mode: art.ToolNamed, Name: "second"}
		}
		r, err := m.Complete(t.Context(), ask("Hello", tools...), &art.ChatOptions{
			ToolChoice: choice, Seed: new(rng.Uint64()), MaxTokens: new(400), LogitBias: noReasoning,
		})
		require.NoError(t, err)
		require.NoError(t, r.Malformed)
		requireScores(t, b, m, r.Message.Sample)
		if r.Finish == art.FinishLength {
			continue
		}
		require.Equal(t, art.FinishToolCalls, r.Finish)
		require.Empty(t, r.Message.Content)
		if choice.Name != "" {
			require.Len(t, r.Message.ToolCalls, 1)
			require.Equal(t, "second", r.Message.ToolCalls[0].Name)
		}
		for _, call := range r.Message.ToolCalls {
			at := slices.IndexFunc(tools, func(t art.Tool) bool { return t.Name == call.Name })
			requireValid(t, tools[at].Parameters, call.Arguments)
		}
	}
}

// TestComplete_ToolOrFormat: with tools and a format the reply is one or the other; with "none" the tools are not seen.
func TestComplete_ToolOrFormat(t *testing.T) {
	_, m := roomy(t)
	tool := art.Tool{Name: "look", Parameters: json.RawMessage(
		`{"properties":{"up":{"type":"boolean"}},"required":["up"],"additionalProperties":false}`)}
	yes := &art.ResponseFormat{Type: art.FormatChoice, Choice: []string{"yes"}}
	for seed := range uint64(6) {
		r, err := m.Complete(t.Context(), ask("Look up.", tool), &art.ChatOptions{
			Seed: &seed, ResponseFormat: yes, LogitBias: noReasoning,
		})
		require.NoError(t, err)
		called := r.Finish == art.FinishToolCalls && r.Message.Content == ""
		require.True(t, called || r.Message.Content == "yes" || r.Finish == art.FinishLength, "%+v", r.Message)
	}
	opts := &art.ChatOptions{Seed: new(uint64(1)), MaxTokens: new(4), ToolChoice: &art.ToolChoice{Mode: art.ToolNone}}
	without, err := m.Complete(t.Context(), ask("Look up."), &art.ChatOptions{MaxTokens: new(4)})
	require.NoError(t, err)
	none, err := m.Complete(t.Context(), ask("Look up.", tool), opts)
	require.NoError(t, err)
	require.Equal(t, without.Message.Sample.PromptIDs, none.Message.Sample.PromptIDs)
	require.Nil(t, none.Message.Sample.Sampled)
}

// TestComplete_FormatAfterReasoning: reasoning before a format is free, and not part of it.
func TestComplete_FormatAfterReasoning(t *testing.T) {
	b, m := roomy(t)
	r, err := m.Complete(t.Context(), ask("Hi"), &art.ChatOptions{
		ResponseFormat: &art.ResponseFormat{Type: art.FormatChoice, Choice: []string{"yes", "no"}},
		LogitBias:      map[int32]float64{thinkOpen: 100, thinkClose: 90},
	})
	require.NoError(t, err)
	require.EqualValues(t, thinkOpen, r.Message.Sample.IDs[0])
	require.Contains(t, r.Message.Sample.IDs, thinkClose)
	require.Contains(t, []string{"yes", "no"}, r.Message.Content)
	requireScores(t, b, m, r.Message.Sample)
}

// TestComplete_RefusedGrammars: a schema that cannot be compiled is invalid, with its keyword and path; a format of
// calls without a grammar is unsupported, with its name.
func TestComplete_RefusedGrammars(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", &art.ModelOptions{ToolFormat: "qwen3_coder"})
	require.NoError(t, m.Register(t.Context(), b))
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"not":{"type":"null"}}}}`)
	_, err := m.Complete(t.Context(), ask("Hi"), &art.ChatOptions{
		ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONSchema, Schema: schema},
	})
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `not`)
	require.ErrorContains(t, err, `/properties/a`)
	_, err = m.Complete(t.Context(), ask("Hi", art.Tool{Name: "look"}), &art.ChatOptions{
		ToolChoice: &art.ToolChoice{Mode: art.ToolRequired},
	})
	require.ErrorIs(t, err, art.ErrUnsupported)
	require.ErrorContains(t, err, "ToolChoice")
	require.ErrorContains(t, err, "qwen3_coder")
}

// TestTrain_LeavesOutForcedTokens: what a grammar left no choice about is not trained on.
func TestTrain_LeavesOutForcedTokens(t *testing.T) {
	_, m := roomy(t)
	r, err := m.Complete(t.Context(), ask("Hi"), &art.ChatOptions{
		ResponseFormat: &art.ResponseFormat{Type: art.FormatRegex, Regex: "(?:cat|dog)s"}, LogitBias: noReasoning,
	})
	require.NoError(t, err)
	s := r.Message.Sample
	require.Contains(t, s.Forced, true)
	require.Contains(t, s.Forced, false)
	good, bad := art.NewTrajectory(art.User("Hi")), art.NewTrajectory(art.User("Hi"))
	good.Add(r.Message)
	good.Reward = 1
	bad.Add(r.Message)
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{good, bad}}}
	set := trainset.FromGroups(groups, (*art.TrainConfig)(nil).WithDefaults(), 0, 1<<20, 1<<20)
	require.Len(t, set.Sequences, 2)
	for i, forced := range s.Forced {
		require.Equal(t, !forced, set.Sequences[0].Trained[len(s.PromptIDs)+i])
	}
}

// TestHandler_StructuredOutput: over HTTP a reply validates against its schema, a forced tool is called, and a schema
// that is not supported is refused with its keyword and path.
func TestHandler_StructuredOutput(t *testing.T) {
	b, _ := roomy(t)
	h, err := b.Handler(nil)
	require.NoError(t, err)
	head := fmt.Sprintf(`{"model": "m", "seed": 5, "logit_bias": {"%d": -100}, `+
		`"messages": [{"role": "user", "content": "Hi"}], `, thinkOpen)
	send := func(fields string) (int, string) {
		r := httptest.NewRequestWithContext(
			t.Context(), http.MethodPost, "http://localhost/v1/chat/completions", strings.NewReader(head+fields+`}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const schema = `{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
		"additionalProperties": false}`
	code, body := send(
		`"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": ` + schema + `}}`)
	require.Equal(t, http.StatusOK, code, body)
	var answer struct {
		Choices []struct{ Message art.Message }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	requireValid(t, json.RawMessage(schema), answer.Choices[0].Message.Content)

	code, body = send(`"tools": [{"type": "function", "function": {"name": "f", "parameters": ` + schema + `}}],
		"tool_choice": {"type": "function", "function": {"name": "f"}}`)
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Len(t, answer.Choices[0].Message.ToolCalls, 1)
	requireValid(t, json.RawMessage(schema), answer.Choices[0].Message.ToolCalls[0].Arguments)

	code, body = send(`"structured_outputs": {"json": {"properties": {"a": {"not": {}}}}}`)
	require.Equal(t, http.StatusBadRequest, code, body)
	require.Contains(t, body, `/properties/a`)
	require.Contains(t, body, `not`)
}

// callID finds the id of a call in an answer of any wire, streamed or not.
var callID = regexp.MustCompile(`(?:"tool_calls":\[\{(?:"index":0,)?"id"|"call_id"|"type":"tool_use","id"):"([^"]*)"`)

// TestComplete_CallIDs: the same reply has the same id of its call in process and over HTTP, streamed or not. The next
// turn has another, also when the client has dropped the first, and so has each choice, and each call on every wire.
func TestComplete_CallIDs(t *testing.T) {
	b, m := roomy(t)
	tool := art.Tool{Name: "look", Parameters: json.RawMessage(
		`{"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], "additionalProperties": false}`)}
	opts := &art.ChatOptions{
		ToolChoice: &art.ToolChoice{Mode: art.ToolNamed, Name: "look"}, Seed: new(uint64(3)), LogitBias: noReasoning,
	}
	h := ask("Look.", tool)
	var ids []string
	for range 3 {
		r, err := m.Complete(t.Context(), h, opts)
		require.NoError(t, err)
		require.Len(t, r.Message.ToolCalls, 1)
		id := r.Message.ToolCalls[0].ID
		require.NotContains(t, ids, id)
		ids = append(ids, id)
		var streamed []art.ToolCall
		_, err = m.Stream(t.Context(), h, opts, func(p art.Piece) error {
			streamed = append(streamed, p.ToolCalls...)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, r.Message.ToolCalls, streamed)
		h.Add(r.Message, art.ToolResult(id, "yes"), art.User("Look."))
		if len(ids) == 2 {
			h.Messages = h.Messages[3:]
		}
	}
	choices, err := m.CompleteN(t.Context(), ask("Look.", tool), 3, opts)
	require.NoError(t, err)
	require.Equal(t, ids[0], choices[0].Message.ToolCalls[0].ID)
	for i, r := range choices[1:] {
		require.NotContains(t, ids, r.Message.ToolCalls[0].ID, "choice %d", i+1)
		ids = append(ids, r.Message.ToolCalls[0].ID)
	}
	handler, err := b.Handler(nil)
	require.NoError(t, err)
	const parameters = `{"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"], ` +
		`"additionalProperties": false}`
	for _, wire := range []struct{ path, body string }{
		{"/v1/chat/completions", `"messages": [{"role": "user", "content": "Look."}], "tools": [{"type": "function", ` +
			`"function": {"name": "look", "parameters": ` + parameters + `}}], ` +
			`"tool_choice": {"type": "function", "function": {"name": "look"}}`},
		{"/v1/responses", `"input": "Look.", "tools": [{"type": "function", "name": "look", "parameters": ` + parameters +
			`}], "tool_choice": {"type": "function", "name": "look"}`},
		{"/v1/messages", `"max_tokens": 200, "messages": [{"role": "user", "content": "Look."}], "tools": [{"name": "look", ` +
			`"input_schema": ` + parameters + `}], "tool_choice": {"type": "tool", "name": "look"}`},
	} {
		for _, stream := range []string{"false", "true"} {
			body := fmt.Sprintf(`{"model": "m", "seed": 3, "logit_bias": {"%d": -100}, "stream": %s, %s}`,
				thinkOpen, stream, wire.body)
			r := httptest.NewRequestWithContext(
				t.Context(), http.MethodPost, "http://localhost"+wire.path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			found := callID.FindStringSubmatch(w.Body.String())
			require.Len(t, found, 2, "%s: %s", wire.path, w.Body)
			if wire.path == "/v1/chat/completions" {
				require.Equal(t, ids[0], found[1], "stream %s", stream)
				continue
			}
			require.NotContains(t, ids, found[1], "%s, stream %s", wire.path, stream) // the other wires have no seed
			require.Len(t, found[1], 9)
			ids = append(ids, found[1])
		}
	}
}
