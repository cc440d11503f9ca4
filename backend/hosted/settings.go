package hosted

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// CheckSettings returns an [art.ErrUnsupported] that names the settings, of those that are off by default, that are on
// and not among supported: for a [Service] that has no place for them. Names are those of [art.Sampling]. Temperature,
// TopP, TopK, MaxTokens, Stop and Seed are not checked.
func CheckSettings(service string, s art.Sampling, supported ...string) error {
	var on []string
	for _, setting := range []struct {
		name string
		on   bool
	}{
		{"MinP", s.MinP > 0},
		{"RepetitionPenalty", s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1},
		{"PresencePenalty", s.PresencePenalty != 0},
		{"FrequencyPenalty", s.FrequencyPenalty != 0},
		{"LogitBias", len(s.LogitBias) > 0},
		{"MinTokens", s.MinTokens > 0},
		{"StopTokenIDs", len(s.StopTokenIDs) > 0},
		{"AllowedTokenIDs", s.AllowedTokenIDs != nil},
		{"BadWords", len(s.BadWords) > 0},
		{"IgnoreEOS", s.IgnoreEOS},
		{"TopLogprobs", s.TopLogprobs > 0},
		{"PromptLogprobs", s.PromptLogprobs != nil},
		{"ResponseFormat", s.ResponseFormat != nil},
		{"ToolChoice", s.ToolChoice != nil},
	} {
		if setting.on && !slices.Contains(supported, setting.name) {
			on = append(on, setting.name)
		}
	}
	if len(on) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s has no %s", art.ErrUnsupported, service, strings.Join(on, ", "))
	return &art.Error{Op: "complete", Err: err, Hint: "leave them out of the ChatOptions"}
}
