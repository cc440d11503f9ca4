package wire

import (
	"encoding/json"
	"errors"

	"github.com/goart-dev/art"
)

// EncodeSample returns the stored form of a sample: the element of "samples" in that of [art.History]. It is lossless.
func EncodeSample(s *art.Sample) (json.RawMessage, error) {
	data, err := json.Marshal(art.History{Messages: []art.Message{{Role: art.RoleAssistant, Sample: s}}})
	if err != nil {
		return nil, err
	}
	var stored struct {
		Samples []json.RawMessage `json:"samples"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, err
	}
	return stored.Samples[0], nil
}

// DecodeSample reads what [EncodeSample] wrote.
func DecodeSample(data json.RawMessage) (*art.Sample, error) {
	stored, err := json.Marshal(map[string]any{
		"messages": []map[string]string{{"role": "assistant", "content": ""}}, "samples": []json.RawMessage{data},
	})
	if err != nil {
		return nil, err
	}
	var h art.History
	if err := json.Unmarshal(stored, &h); err != nil {
		return nil, err
	}
	if h.Messages[0].Sample == nil {
		return nil, errors.New("the sample is null")
	}
	return h.Messages[0].Sample, nil
}
