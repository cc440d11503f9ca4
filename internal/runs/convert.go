package runs

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/goart-dev/art"
)

// convert returns f of each element; nil of nil.
func convert[A, B any](list []A, f func(*A) (B, error)) ([]B, error) {
	if list == nil {
		return nil, nil
	}
	out := make([]B, len(list))
	for i := range list {
		var err error
		if out[i], err = f(&list[i]); err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return out, nil
}

// toTrajectoryRow returns the columns of a trajectory, without its indices and without Exact.
func toTrajectoryRow(t *art.Trajectory) (row trajectoryRow, err error) {
	row.Reward, row.Logs, row.Duration = &t.Reward, slices.Clone(t.Logs), int64(t.Duration)
	if row.Metrics, err = encodeMetrics(t.Metrics); err != nil {
		return row, err
	}
	if row.Metadata, err = encodeLabels(t.Metadata); err != nil {
		return row, err
	}
	if row.StartExact, err = t.Start.MarshalBinary(); err != nil {
		return row, fmt.Errorf("start: %w", err)
	}
	if !t.Start.IsZero() {
		row.Start = t.Start.UnixMicro()
	}
	if first, last, ok := t.PolicySteps(); ok {
		row.FirstPolicyStep, row.LastPolicyStep = new(int64(first)), new(int64(last))
	}
	if row.Messages, row.Tools, err = toHistoryRows(&t.History); err != nil {
		return row, err
	}
	row.AdditionalHistories, err = convert(t.AdditionalHistories, func(h *art.History) (c historyCol, err error) {
		c.Messages, c.Tools, err = toHistoryRows(h)
		return c, err
	})
	return row, err
}

func fromTrajectoryRow(row *trajectoryRow) (t *art.Trajectory, err error) {
	if row.Reward == nil {
		return nil, fmt.Errorf("it has no reward")
	}
	t = &art.Trajectory{Reward: *row.Reward, Logs: row.Logs, Duration: time.Duration(row.Duration)}
	if t.Metrics, err = decodeMetrics(row.Metrics); err != nil {
		return nil, err
	}
	if t.Metadata, err = decodeLabels(row.Metadata); err != nil {
		return nil, err
	}
	if err := t.Start.UnmarshalBinary(row.StartExact); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if t.History, err = fromHistoryRows(row.Messages, row.Tools); err != nil {
		return nil, err
	}
	t.AdditionalHistories, err = convert(row.AdditionalHistories, func(c *historyCol) (art.History, error) {
		return fromHistoryRows(c.Messages, c.Tools)
	})
	return t, err
}

func toHistoryRows(h *art.History) (messages []messageRow, tools []toolRow, err error) {
	if messages, err = convert(h.Messages, toMessageRow); err != nil {
		return nil, nil, fmt.Errorf("message %w", err)
	}
	if tools, err = convert(h.Tools, toToolRow); err != nil {
		return nil, nil, fmt.Errorf("tool %w", err)
	}
	return messages, tools, nil
}

func fromHistoryRows(messages []messageRow, tools []toolRow) (h art.History, err error) {
	if h.Messages, err = convert(messages, fromMessageRow); err != nil {
		return h, fmt.Errorf("message %w", err)
	}
	if h.Tools, err = convert(tools, fromToolRow); err != nil {
		return h, fmt.Errorf("tool %w", err)
	}
	return h, nil
}

// toMessageRow also keeps the JSON of a message that was read from JSON with more than the columns hold.
func toMessageRow(m *art.Message) (messageRow, error) {
	row := messageRow{
		Role: string(m.Role), Content: m.Content, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, Name: m.Name,
		Trainable: m.Sample != nil, Sample: toSampleRow(m.Sample),
	}
	var err error
	row.ToolCalls, err = convert(m.ToolCalls, func(c *art.ToolCall) (toolCallRow, error) {
		return toolCallRow{c.ID, c.Name, c.Arguments}, nil
	})
	if err != nil {
		return row, err
	}
	bare := *m
	bare.Sample = nil
	if plain, err := plainMessage(&row); err != nil || reflect.DeepEqual(plain, bare) {
		return row, err
	}
	row.Wire, err = wireJSON(bare)
	return row, err
}

// plainMessage returns the message in the columns, without wire and sample.
func plainMessage(row *messageRow) (art.Message, error) {
	calls, err := convert(row.ToolCalls, func(c *toolCallRow) (art.ToolCall, error) {
		return art.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}, nil
	})
	return art.Message{
		Role: art.Role(row.Role), Content: row.Content, Reasoning: row.Reasoning, ToolCalls: calls,
		ToolCallID: row.ToolCallID, Name: row.Name,
	}, err
}

// fromMessageRow reads the fields from the columns, and everything else from the JSON.
func fromMessageRow(row *messageRow) (art.Message, error) {
	plain, err := plainMessage(row)
	if err == nil {
		plain.Sample, err = fromSampleRow(row.Sample)
	}
	if err != nil || row.Wire == nil {
		return plain, err
	}
	var m art.Message
	if err := m.UnmarshalJSON([]byte(*row.Wire)); err != nil {
		return m, err
	}
	if len(m.ToolCalls) != len(plain.ToolCalls) {
		return m, fmt.Errorf("the JSON has %d tool calls of %d", len(m.ToolCalls), len(plain.ToolCalls))
	}
	for i, c := range plain.ToolCalls {
		m.ToolCalls[i].ID, m.ToolCalls[i].Name, m.ToolCalls[i].Arguments = c.ID, c.Name, c.Arguments
	}
	if len(plain.ToolCalls) == 0 {
		m.ToolCalls = plain.ToolCalls
	}
	m.Role, m.Content, m.Reasoning = plain.Role, plain.Content, plain.Reasoning
	m.ToolCallID, m.Name, m.Sample = plain.ToolCallID, plain.Name, plain.Sample
	return m, nil
}

// toToolRow keeps the JSON of a tool as toMessageRow does.
func toToolRow(t *art.Tool) (toolRow, error) {
	row := toolRow{Name: t.Name, Description: t.Description}
	if t.Parameters != nil {
		row.Parameters = new(string(t.Parameters))
	}
	if reflect.DeepEqual(plainTool(&row), *t) {
		return row, nil
	}
	var err error
	row.Wire, err = wireJSON(*t)
	return row, err
}

func plainTool(row *toolRow) art.Tool {
	t := art.Tool{Name: row.Name, Description: row.Description}
	if row.Parameters != nil {
		t.Parameters = json.RawMessage(*row.Parameters)
	}
	return t
}

func fromToolRow(row *toolRow) (art.Tool, error) {
	t := plainTool(row)
	if row.Wire == nil {
		return t, nil
	}
	var read art.Tool
	err := read.UnmarshalJSON([]byte(*row.Wire))
	read.Name, read.Description, read.Parameters = t.Name, t.Description, t.Parameters
	return read, err
}

func wireJSON(v json.Marshaler) (*string, error) {
	content, err := v.MarshalJSON()
	return new(string(content)), err
}

func toSampleRow(s *art.Sample) *sampleRow {
	if s == nil {
		return nil
	}
	return &sampleRow{
		PromptIDs: s.PromptIDs, IDs: s.IDs, Logprobs: s.Logprobs, Sampled: s.Sampled, Forced: s.Forced,
		Step: int64(s.Step), Finish: s.Finish,
		Settings: settingsRow{
			Temperature: s.Settings.Temperature, TopP: s.Settings.TopP, TopK: int64(s.Settings.TopK),
			MaxTokens: int64(s.Settings.MaxTokens), Stop: slices.Clone(s.Settings.Stop), Seed: s.Settings.Seed,
			Shape: toShapeRow(&s.Settings), Limits: toLimitsRow(&s.Settings),
		},
	}
}

func fromSampleRow(row *sampleRow) (*art.Sample, error) {
	if row == nil {
		return nil, nil
	}
	s := &art.Sample{
		PromptIDs: row.PromptIDs, IDs: row.IDs, Logprobs: row.Logprobs, Sampled: row.Sampled, Forced: row.Forced,
		Step: int(row.Step), Finish: row.Finish,
		Settings: art.Sampling{
			Temperature: row.Settings.Temperature, TopP: row.Settings.TopP, TopK: int(row.Settings.TopK),
			MaxTokens: int(row.Settings.MaxTokens), Stop: row.Settings.Stop, Seed: row.Settings.Seed,
		},
	}
	row.Settings.Limits.apply(&s.Settings)
	return s, row.Settings.Shape.apply(&s.Settings)
}

// toLimitsRow returns the settings that the first files with a shape did not have, nil where all are off.
func toLimitsRow(s *art.Sampling) *limitsRow {
	if s.AllowedTokenIDs == nil && s.BadWords == nil && !s.IgnoreEOS {
		return nil
	}
	return &limitsRow{slices.Clone(s.AllowedTokenIDs), slices.Clone(s.BadWords), s.IgnoreEOS}
}

// apply is the inverse of toLimitsRow.
func (row *limitsRow) apply(s *art.Sampling) {
	if row != nil {
		s.AllowedTokenIDs, s.BadWords, s.IgnoreEOS = row.AllowedTokenIDs, row.BadWords, row.IgnoreEOS
	}
}

// toShapeRow returns the settings that the first files did not have, nil where all are off.
func toShapeRow(s *art.Sampling) *shapeRow {
	row := &shapeRow{
		MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty, PresencePenalty: s.PresencePenalty,
		FrequencyPenalty: s.FrequencyPenalty, MinTokens: int64(s.MinTokens), StopTokenIDs: slices.Clone(s.StopTokenIDs),
		ResponseFormat: settingJSON(s.ResponseFormat), ToolChoice: settingJSON(s.ToolChoice),
	}
	if s.LogitBias != nil {
		row.LogitBias = []biasRow{}
	}
	for _, id := range slices.Sorted(maps.Keys(s.LogitBias)) {
		row.LogitBias = append(row.LogitBias, biasRow{id, s.LogitBias[id]})
	}
	if reflect.ValueOf(*row).IsZero() {
		return nil
	}
	return row
}

// apply is the inverse of toShapeRow.
func (row *shapeRow) apply(s *art.Sampling) error {
	if row == nil {
		return nil
	}
	s.MinP, s.RepetitionPenalty, s.PresencePenalty = row.MinP, row.RepetitionPenalty, row.PresencePenalty
	s.FrequencyPenalty, s.MinTokens, s.StopTokenIDs = row.FrequencyPenalty, int(row.MinTokens), row.StopTokenIDs
	if row.LogitBias != nil {
		s.LogitBias = map[int32]float64{}
	}
	for _, b := range row.LogitBias {
		s.LogitBias[b.ID] = b.Bias
	}
	var err error
	if s.ResponseFormat, err = fromSettingJSON[art.ResponseFormat](row.ResponseFormat); err != nil {
		return fmt.Errorf("response format: %w", err)
	}
	if s.ToolChoice, err = fromSettingJSON[art.ToolChoice](row.ToolChoice); err != nil {
		return fmt.Errorf("tool choice: %w", err)
	}
	return nil
}

// settingJSON returns the JSON of a setting, nil of nil. One that [art.Sampling.Validate] accepts always has some.
func settingJSON[T any](setting *T) *string {
	if setting == nil {
		return nil
	}
	content, _ := json.Marshal(setting)
	return new(string(content))
}

// fromSettingJSON is the inverse of settingJSON.
func fromSettingJSON[T any](text *string) (*T, error) {
	if text == nil {
		return nil, nil
	}
	setting := new(T)
	return setting, json.Unmarshal([]byte(*text), setting)
}

func toGroupRow(g *art.TrajectoryGroup) (row *groupRow, err error) {
	row = &groupRow{Logs: slices.Clone(g.Logs)}
	if g.Trajectories != nil {
		row.Trajectories = new(int64(len(g.Trajectories)))
	}
	if row.Metrics, err = encodeMetrics(g.Metrics); err != nil {
		return nil, err
	}
	if row.Metadata, err = encodeLabels(g.Metadata); err != nil {
		return nil, err
	}
	row.Failures, err = convert(g.Failures, func(f *art.Failure) (failureRow, error) {
		return failureRow{int64(f.Scenario), int64(f.Attempt), int64(f.Tries), f.Type, f.Message, f.Stack}, nil
	})
	return row, err
}

// fromGroupRow returns the group with room for its trajectories.
func fromGroupRow(row *groupRow) (g *art.TrajectoryGroup, err error) {
	g = &art.TrajectoryGroup{Logs: row.Logs}
	if row.Trajectories != nil {
		g.Trajectories = []*art.Trajectory{}
	}
	if g.Metrics, err = decodeMetrics(row.Metrics); err != nil {
		return nil, err
	}
	if g.Metadata, err = decodeLabels(row.Metadata); err != nil {
		return nil, err
	}
	g.Failures, err = convert(row.Failures, func(f *failureRow) (art.Failure, error) {
		return art.Failure{
			Scenario: int(f.Scenario), Attempt: int(f.Attempt), Tries: int(f.Tries),
			Type: f.Type, Message: f.Message, Stack: f.Stack,
		}, nil
	})
	return g, err
}
