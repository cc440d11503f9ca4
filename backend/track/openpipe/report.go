package openpipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// report is the body of POST /report.
type report struct {
	Requested int64  `json:"requestedAt"` // ms
	Received  int64  `json:"receivedAt"`  // ms
	Request   any    `json:"reqPayload"`
	Response  any    `json:"respPayload,omitempty"`
	Status    int    `json:"statusCode"`
	Error     string `json:"errorMessage,omitempty"`
}

// Limits of metadata in OpenAI's API, whose form it has.
const (
	maxEntries = 16
	maxKey     = 64
	maxText    = 512
)

// newReport tells of a completion, and of its rollout if it has one.
func newReport(e art.CompletionEvent, r *track.Rollout, more map[string]string) report {
	out := report{
		Requested: e.Time.UnixMilli(), Received: e.Time.Add(e.Duration).UnixMilli(), Status: http.StatusOK,
		Request: request(e, metadata(e, r, more)),
	}
	if e.Err != nil {
		out.Status, out.Error = http.StatusInternalServerError, e.Err.Error()
		return out
	}
	out.Response = response(e)
	return out
}

// request is a request of OpenAI's chat API.
func request(e art.CompletionEvent, metadata map[string]string) map[string]any {
	out := settings(e.Request.Settings)
	out["model"], out["messages"] = e.Model.Name(), e.Request.Messages
	if len(e.Request.Tools) > 0 {
		out["tools"] = e.Request.Tools
	}
	if len(metadata) > 0 {
		out["metadata"] = metadata
	}
	return out
}

// settings are the fields of the request that say how to sample, without those that are off.
func settings(s art.Sampling) map[string]any {
	out := map[string]any{}
	data, err := json.Marshal(s)
	if err != nil || json.Unmarshal(data, &out) != nil {
		return map[string]any{} // a number without JSON: the report is worth more than its settings
	}
	for _, key := range []string{"max_tokens", "top_k"} {
		if out[key] == 0.0 {
			delete(out, key)
		}
	}
	return out
}

// response is a reply of OpenAI's chat API.
func response(e art.CompletionEvent) map[string]any {
	r := e.Response
	return map[string]any{
		"id": r.ID, "object": "chat.completion", "created": e.Time.Unix(), "model": r.Model,
		"choices": []map[string]any{{"index": 0, "message": r.Message, "finish_reason": r.Finish}},
		"usage": map[string]int{
			"prompt_tokens": r.Usage.PromptTokens, "completion_tokens": r.Usage.CompletionTokens,
			"total_tokens": r.Usage.PromptTokens + r.Usage.CompletionTokens,
		},
	}
}

// metadata are texts to find a completion by: those of the options, the reward and the place of the rollout, and then
// what the trajectory has, in the order of names, as far as there is room.
func metadata(e art.CompletionEvent, r *track.Rollout, more map[string]string) map[string]string {
	out := map[string]string{}
	add := func(key, value string) {
		if _, taken := out[key]; !taken && len(out) < maxEntries && len(key) <= maxKey {
			out[key] = cut(value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(more)) {
		add(key, more[key])
	}
	if e.Response != nil && e.Response.Message.Sample != nil {
		add("policy_step", strconv.Itoa(e.Response.Message.Sample.Step))
	}
	if r == nil {
		return out
	}
	add("scenario", strconv.Itoa(r.Start.Scenario))
	add("attempt", strconv.Itoa(r.Start.Attempt))
	if r.End == nil {
		return out
	}
	if r.End.Failure != nil {
		add("failure", r.End.Failure.Type)
	}
	if t := r.End.Trajectory; t != nil {
		describe(t, add)
	}
	return out
}

// describe adds the reward, the metrics and the metadata of a trajectory.
func describe(t *art.Trajectory, add func(key, value string)) {
	if !math.IsNaN(t.Reward) {
		add("reward", number(t.Reward))
	}
	for _, key := range slices.Sorted(maps.Keys(t.Metrics)) {
		add(key, number(t.Metrics[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(t.Metadata)) {
		add(key, fmt.Sprint(t.Metadata[key]))
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// cut returns the first maxText characters.
func cut(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText])
	}
	return text
}
