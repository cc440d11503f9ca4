package wire

import (
	"bytes"
	"encoding/json"

	"github.com/goart-dev/art"
)

// Message is a reply in OpenAI's form. Its reasoning is written in both spellings: "reasoning", which is vLLM's, beside
// "reasoning_content", which [art.Message] writes and more clients read.
type Message struct{ art.Message }

// MarshalJSON implements [json.Marshaler].
func (m Message) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(m.Message)
	if err != nil || m.Reasoning == "" {
		return data, err
	}
	reasoning, err := json.Marshal(m.Reasoning)
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSuffix(data, []byte("}")), `,"reasoning":`+string(reasoning)+"}"...), nil
}

// readReasoning sets the reasoning of a message that a client has sent in vLLM's spelling only.
func readReasoning(m *art.Message, raw []byte) {
	var read struct {
		Reasoning string `json:"reasoning"`
	}
	if m.Reasoning == "" && bytes.Contains(raw, []byte(`"reasoning"`)) && json.Unmarshal(raw, &read) == nil {
		m.Reasoning = read.Reasoning
	}
}
