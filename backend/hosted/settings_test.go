package hosted

import (
	"errors"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// TestCheckSettings_NamesWhatIsOn and not supported, and nothing else.
func TestCheckSettings_NamesWhatIsOn(t *testing.T) {
	on := art.Sampling{
		MinP: 0.1, RepetitionPenalty: 2, PresencePenalty: 1, FrequencyPenalty: -1, LogitBias: map[int32]float64{1: 1},
		MinTokens: 1, StopTokenIDs: []int32{1}, TopLogprobs: 1, PromptLogprobs: new(int),
		ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONObject}, ToolChoice: &art.ToolChoice{Mode: art.ToolRequired},
	}
	err := CheckSettings("X", on, "LogitBias", "MinP")
	if !errors.Is(err, art.ErrUnsupported) {
		t.Fatalf("error %v", err)
	}
	want := "X has no RepetitionPenalty, PresencePenalty, FrequencyPenalty, MinTokens, StopTokenIDs, TopLogprobs, " +
		"PromptLogprobs, ResponseFormat, ToolChoice"
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q, want %q in it", err, want)
	}
	off := art.Sampling{
		Temperature: 0.5, TopP: 0.5, TopK: 3, MaxTokens: 9, Stop: []string{"x"}, Seed: 4, RepetitionPenalty: 1,
		LogitBias: map[int32]float64{}, StopTokenIDs: []int32{},
	}
	if err := CheckSettings("X", off); err != nil {
		t.Error(err)
	}
}
