package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

// trainableKey is the key of metadata with the indices of the messages that ART trained on.
const trainableKey = "art_trainable"

// groupJSON is a group of ART.
type groupJSON struct {
	Trajectories []json.RawMessage          `json:"trajectories"`
	Exceptions   []exceptionJSON            `json:"exceptions"`
	Metadata     map[string]any             `json:"metadata"`
	Metrics      map[string]json.RawMessage `json:"metrics"`
	Logs         []string                   `json:"logs"`
}

// exceptionJSON is a rollout that failed.
type exceptionJSON struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
}

// historyJSON is a conversation.
type historyJSON struct {
	Messages []json.RawMessage `json:"messages_and_choices"`
	Tools    []art.Tool        `json:"tools"`
}

// trajectoryJSON is a trajectory.
type trajectoryJSON struct {
	historyJSON
	Additional []historyJSON              `json:"additional_histories"`
	Reward     float64                    `json:"reward"`
	Metrics    map[string]json.RawMessage `json:"metrics"`
	Metadata   map[string]any             `json:"metadata"`
	Logs       []string                   `json:"logs"`
	Start      *time.Time                 `json:"start_time"`
	Exchanges  []json.RawMessage          `json:"exchanges"` // of 0.5.23: whole requests and responses
}

// group converts a group.
func (g *groupJSON) group() (*art.TrajectoryGroup, error) {
	metrics, err := numbers(g.Metrics)
	if err != nil {
		return nil, err
	}
	out := &art.TrajectoryGroup{Metrics: metrics, Metadata: labels(g.Metadata), Logs: g.Logs}
	for i, e := range g.Exceptions {
		out.Failures = append(out.Failures, art.Failure{
			Attempt: len(g.Trajectories) + i, Tries: 1, Type: e.Type, Message: e.Message, Stack: e.Traceback,
		})
	}
	for i, raw := range g.Trajectories {
		t, err := trajectory(raw)
		if err != nil {
			return nil, fmt.Errorf("trajectory %d: %w", i, err)
		}
		out.Trajectories = append(out.Trajectories, t)
	}
	return out, nil
}

// trajectory converts a trajectory.
func trajectory(raw json.RawMessage) (*art.Trajectory, error) {
	var in trajectoryJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	if len(in.Messages) == 0 && len(in.Exchanges) > 0 {
		return nil, errors.New("it has recorded requests in place of messages, which are not read")
	}
	metrics, err := numbers(in.Metrics)
	if err != nil {
		return nil, err
	}
	out := &art.Trajectory{Reward: in.Reward, Metrics: metrics, Metadata: labels(in.Metadata), Logs: in.Logs}
	if in.Start != nil {
		out.Start = *in.Start
	}
	if seconds, ok := metrics["duration"]; ok && seconds > 0 && seconds < 1e9 {
		out.Duration = time.Duration(seconds * float64(time.Second))
	}
	var trained []string
	if out.History, trained, err = in.history(); err != nil {
		return nil, err
	}
	for i := range in.Additional {
		h, more, err := in.Additional[i].history()
		if err != nil {
			return nil, fmt.Errorf("additional history %d: %w", i, err)
		}
		out.AdditionalHistories = append(out.AdditionalHistories, h)
		for _, index := range more {
			trained = append(trained, fmt.Sprintf("%d/%s", i+1, index))
		}
	}
	if len(trained) > 0 {
		out.Metadata[trainableKey] = strings.Join(trained, ",")
	}
	return out, nil
}

// history converts a conversation, and returns the indices of the messages that were sampled.
func (h *historyJSON) history() (out art.History, trained []string, err error) {
	out.Tools = h.Tools
	for i, raw := range h.Messages {
		m, sampled, err := message(raw)
		if err != nil {
			return out, nil, fmt.Errorf("message %d: %w", i, err)
		}
		if sampled {
			trained = append(trained, strconv.Itoa(i))
		}
		out.Messages = append(out.Messages, m)
	}
	return out, trained, nil
}

// message converts a message, or a choice of a completion, whose other fields the message keeps as "art_choice".
func message(raw json.RawMessage) (m art.Message, sampled bool, err error) {
	var choice map[string]json.RawMessage
	if err := json.Unmarshal(raw, &choice); err != nil {
		return m, false, err
	}
	inner, isChoice := choice["message"]
	if isChoice {
		delete(choice, "message")
		rest, err := json.Marshal(choice)
		if err != nil {
			return m, false, err
		}
		if raw, err = withField(inner, "art_choice", rest); err != nil {
			return m, false, err
		}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, false, err
	}
	if m.Role == "" {
		return m, false, errors.New("it has no role")
	}
	return m, isChoice, nil
}

// withField appends a field to a JSON object.
func withField(object json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	object = bytes.TrimSpace(object)
	if !json.Valid(object) || len(object) < 2 || object[0] != '{' {
		return nil, errors.New("the message of a choice is no object")
	}
	head := bytes.TrimRight(object[:len(object)-1], " \t\r\n")
	comma := ","
	if len(head) == 1 {
		comma = ""
	}
	return json.RawMessage(fmt.Sprintf("%s%s%q:%s}", head, comma, name, value)), nil
}

// numbers are metrics: numbers, and true and false as 1 and 0.
func numbers(in map[string]json.RawMessage) (map[string]float64, error) {
	out := map[string]float64{}
	for name, raw := range in {
		switch text := string(raw); text {
		case "true":
			out[name] = 1
		case "false":
			out[name] = 0
		case "null":
		default:
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("the metric %s is %s", name, text)
			}
			out[name] = x
		}
	}
	return out, nil
}

// labels are metadata: texts, numbers, true, false and null; anything else becomes its JSON.
func labels(in map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range in {
		switch v := value.(type) {
		case float64:
			out[name] = v
			if n := int(v); float64(n) == v {
				out[name] = n
			}
		case string, bool, nil:
			out[name] = v
		default:
			text, err := json.Marshal(v)
			if err != nil {
				text = []byte(fmt.Sprint(v))
			}
			out[name] = string(text)
		}
	}
	return out
}
