package wandbwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// Group is a group of trajectories.
type Group struct {
	Trajectories []Trajectory       `json:"trajectories"`
	Exceptions   []Exception        `json:"exceptions"`
	Metadata     map[string]any     `json:"metadata"`
	Metrics      map[string]float64 `json:"metrics"`
	Logs         []string           `json:"logs"`
}

// Exception is a rollout that failed.
type Exception struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
}

// History is a conversation: of each element either a message, or the choice that the model answered with.
type History struct {
	Messages []json.RawMessage `json:"messages_and_choices,omitempty"`
	Tools    []art.Tool        `json:"tools"`
}

// Trajectory is one rollout.
type Trajectory struct {
	History
	AdditionalHistories []History          `json:"additional_histories"`
	Reward              float64            `json:"reward"`
	InitialStep         *int               `json:"initial_policy_version"`
	FinalStep           *int               `json:"final_policy_version"`
	Metrics             map[string]float64 `json:"metrics"`
	Metadata            map[string]any     `json:"metadata"`
	Logs                []string           `json:"logs"`
	Exchanges           *Exchanges         `json:"exchanges,omitempty"`
}

// Exchanges are the recorded requests of newer clients, by the protocol.
type Exchanges struct {
	Chat        []Exchange        `json:"chat_completions"`
	Completions []json.RawMessage `json:"completions"`
	Responses   []json.RawMessage `json:"responses"`
	Messages    []json.RawMessage `json:"messages"`
}

// Exchange is a chat completion.
type Exchange struct {
	Request struct {
		Messages []json.RawMessage `json:"messages"`
		Tools    []art.Tool        `json:"tools"`
	} `json:"request"`
	Response struct {
		Choices []json.RawMessage `json:"choices"`
	} `json:"response"`
}

// choice is a reply as the server gave it.
type choice struct {
	FinishReason string          `json:"finish_reason"`
	Index        int             `json:"index"`
	Message      json.RawMessage `json:"message"`
	Logprobs     *logprobs       `json:"logprobs"`
	TokenIDs     []int32         `json:"token_ids,omitempty"`
	Sample       json.RawMessage `json:"art_sample,omitempty"`
}

type logprobs struct {
	Content []tokenLogprob `json:"content"`
}

type tokenLogprob struct {
	Token   string     `json:"token"`
	Logprob float32    `json:"logprob"`
	Bytes   []int      `json:"bytes"`
	Top     []struct{} `json:"top_logprobs"`
}

// Tokenize renders a conversation to the prompt of its next reply.
type Tokenize func(h *art.History) ([]int32, error)

// Decode converts groups. step is the policy of choices that do not say theirs. Choices of our own servers carry their
// exact tokens. Others must have token ids and logprobs; their prompts are rendered with tokenize.
func Decode(groups []Group, step int, tokenize Tokenize) ([]*art.TrajectoryGroup, error) {
	out := make([]*art.TrajectoryGroup, len(groups))
	for i := range groups {
		g := &groups[i]
		out[i] = &art.TrajectoryGroup{Metrics: g.Metrics, Metadata: labels(g.Metadata), Logs: g.Logs}
		for j := range g.Trajectories {
			t, err := g.Trajectories[j].decode(step, tokenize)
			if err != nil {
				return nil, fmt.Errorf("trajectory_groups[%d].trajectories[%d]: %w", i, j, err)
			}
			out[i].Trajectories = append(out[i].Trajectories, t)
		}
		for j, e := range g.Exceptions {
			out[i].Failures = append(out[i].Failures, art.Failure{
				Attempt: len(g.Trajectories) + j, Tries: 1, Type: e.Type, Message: e.Message, Stack: e.Traceback,
			})
		}
	}
	return out, nil
}

// labels keeps what metadata may hold, and writes the rest as JSON.
func labels(metadata map[string]any) map[string]any {
	for key, v := range metadata {
		switch v.(type) {
		case string, bool, float64:
		case nil:
			delete(metadata, key)
		default:
			text, _ := json.Marshal(v) // it came from JSON
			metadata[key] = string(text)
		}
	}
	return metadata
}

func (t *Trajectory) decode(step int, tokenize Tokenize) (*art.Trajectory, error) {
	histories, err := t.histories()
	if err != nil {
		return nil, err
	}
	if t.FinalStep != nil {
		step = *t.FinalStep
	}
	out := &art.Trajectory{Reward: t.Reward, Metrics: t.Metrics, Metadata: labels(t.Metadata), Logs: t.Logs}
	for i := range histories {
		h, err := histories[i].decode(step, tokenize)
		if err != nil {
			return nil, fmt.Errorf("history %d: %w", i, err)
		}
		if i == 0 {
			out.History = *h
		} else {
			out.AdditionalHistories = append(out.AdditionalHistories, *h)
		}
	}
	return out, nil
}

// histories returns the conversations, or what was recorded where a client sends that alone.
func (t *Trajectory) histories() ([]History, error) {
	x := t.Exchanges
	if len(t.History.Messages) > 0 || x == nil {
		return append([]History{t.History}, t.AdditionalHistories...), nil
	}
	if len(x.Completions)+len(x.Responses)+len(x.Messages) > 0 {
		return nil, errors.New("only exchanges of chat completions can be trained on")
	}
	var out []History
	for i := range x.Chat {
		e := &x.Chat[i]
		for _, reply := range e.Response.Choices {
			messages := append(append([]json.RawMessage{}, e.Request.Messages...), reply)
			out = append(out, History{messages, e.Request.Tools})
		}
	}
	if len(out) == 0 {
		return []History{t.History}, nil // the trainer skips it, and says so
	}
	return out, nil
}

func (h *History) decode(step int, tokenize Tokenize) (*art.History, error) {
	out := &art.History{Tools: h.Tools}
	for i, raw := range h.Messages {
		var c choice
		m, err := &art.Message{}, json.Unmarshal(raw, &c)
		if err == nil && c.Message != nil {
			m, err = c.decode(out, step, tokenize)
		} else {
			err = json.Unmarshal(raw, m)
		}
		if err != nil {
			return nil, fmt.Errorf("messages_and_choices[%d]: %w", i, err)
		}
		out.Messages = append(out.Messages, *m)
	}
	return out, nil
}

// decode converts a reply to the conversation before it.
func (c *choice) decode(before *art.History, step int, tokenize Tokenize) (*art.Message, error) {
	var m art.Message
	if err := json.Unmarshal(c.Message, &m); err != nil {
		return nil, err
	}
	var err error
	if c.Sample != nil {
		m.Sample, err = wire.DecodeSample(c.Sample)
		return &m, err
	}
	m.Sample = &art.Sample{Step: step, Finish: c.FinishReason}
	if m.Sample.IDs, err = c.ids(); err != nil {
		return nil, err
	}
	for _, t := range c.Logprobs.Content {
		m.Sample.Logprobs = append(m.Sample.Logprobs, t.Logprob)
	}
	m.Sample.PromptIDs, err = tokenize(before)
	return &m, err
}

// tokenID begins the tokens of logprobs that are ids.
const tokenID = "token_id:"

// ids returns the tokens of a choice that has no sample.
func (c *choice) ids() ([]int32, error) {
	if c.Logprobs == nil || len(c.Logprobs.Content) == 0 {
		return nil, errors.New("the choice has no logprobs; ask for them with logprobs=True, and send it as it came")
	}
	if len(c.TokenIDs) == len(c.Logprobs.Content) {
		return c.TokenIDs, nil
	}
	var ids []int32
	for _, t := range c.Logprobs.Content {
		text, ok := strings.CutPrefix(t.Token, tokenID)
		id, err := strconv.ParseInt(text, 10, 32)
		if !ok || err != nil {
			return nil, errors.New("the choice has no token ids, neither art_sample, token_ids, nor logprobs by id: " +
				"send it as the server gave it, and without a stream")
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

// Encode converts groups to what a service trains on.
func Encode(groups []*art.TrajectoryGroup) ([]Group, error) {
	out := make([]Group, 0, len(groups))
	for _, g := range groups {
		if g == nil {
			continue
		}
		e := Group{Trajectories: []Trajectory{}, Exceptions: []Exception{}, Metadata: orEmpty(g.Metadata),
			Metrics: Finite(g.Metrics), Logs: append([]string{}, g.Logs...)}
		for _, t := range g.Trajectories {
			if t == nil {
				continue
			}
			encoded, err := encode(t)
			if err != nil {
				return nil, err
			}
			e.Trajectories = append(e.Trajectories, encoded)
		}
		for _, f := range g.Failures {
			e.Exceptions = append(e.Exceptions, Exception{f.Type, f.Message, f.Stack})
		}
		out = append(out, e)
	}
	return out, nil
}

func orEmpty[T any](m map[string]T) map[string]T {
	if m == nil {
		return map[string]T{}
	}
	return m
}

// Finite returns metrics without those that JSON cannot hold.
func Finite(metrics map[string]float64) map[string]float64 {
	out := orEmpty(maps.Clone(metrics))
	maps.DeleteFunc(out, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	return out
}

func encode(t *art.Trajectory) (Trajectory, error) {
	out := Trajectory{
		AdditionalHistories: []History{}, Reward: t.Reward, Metrics: Finite(t.Metrics), Metadata: orEmpty(t.Metadata),
		Logs: append([]string{}, t.Logs...),
	}
	for i, h := range t.Histories() {
		encoded := History{Messages: []json.RawMessage{}, Tools: h.Tools}
		for j := range h.Messages {
			raw, err := encodeMessage(&h.Messages[j])
			if err != nil {
				return out, err
			}
			encoded.Messages = append(encoded.Messages, raw)
		}
		if i == 0 {
			out.History = encoded
		} else {
			out.AdditionalHistories = append(out.AdditionalHistories, encoded)
		}
	}
	if s := t.Samples(); len(s) > 0 {
		out.InitialStep, out.FinalStep = &s[0].Step, &s[len(s)-1].Step
	}
	return out, nil
}

// encodeMessage writes a message, and one with a sample as a choice. Its sample is sent beside its logprobs: our own
// servers need no other field, and others ignore it.
func encodeMessage(m *art.Message) (json.RawMessage, error) {
	raw, err := json.Marshal(m)
	if err != nil || m.Sample == nil {
		return raw, err
	}
	s := m.Sample
	c := choice{FinishReason: s.Finish, Message: raw, TokenIDs: s.IDs, Logprobs: &logprobs{}}
	for i, id := range s.IDs {
		t := tokenLogprob{Token: tokenID + strconv.Itoa(int(id)), Logprob: s.Logprobs[i], Top: []struct{}{}}
		c.Logprobs.Content = append(c.Logprobs.Content, t)
	}
	if c.Sample, err = wire.EncodeSample(s); err != nil {
		return nil, err
	}
	return json.Marshal(c)
}
