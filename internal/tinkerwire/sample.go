package tinkerwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// SampleRequest asks for samples. It is JSON in both dialects.
type SampleRequest struct {
	NumSamples int            `json:"num_samples,omitempty"`
	Prompt     Input          `json:"prompt"`
	Params     SamplingParams `json:"sampling_params"`
	SessionID  string         `json:"sampling_session_id,omitempty"`
	SeqID      *int64         `json:"seq_id,omitempty"`
	BaseModel  string         `json:"base_model,omitempty"`
	ModelPath  string         `json:"model_path,omitempty"`

	PromptLogprobs      bool    `json:"prompt_logprobs,omitempty"`
	TopPromptLogprobs   int     `json:"topk_prompt_logprobs,omitempty"`
	TopSampleLogprobs   int     `json:"topk_sample_logprobs,omitempty"`
	TargetLogprobs      *Tensor `json:"target_prompt_logprobs,omitempty"`
	PromptAltTokens     int     `json:"prompt_alt_tokens_k,omitempty"`
	PromptLogprobsLastN *int    `json:"prompt_logprobs_last_n,omitempty"`
	RecordStability     bool    `json:"record_stability_info,omitempty"`

	Type string `json:"type"`
}

// SamplingParams shape samples.
type SamplingParams struct {
	MaxTokens   *int     `json:"max_tokens,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        Stop     `json:"stop"`
	Temperature *float64 `json:"temperature,omitempty"` // default 1
	TopK        *int     `json:"top_k,omitempty"`       // default -1, off
	TopP        *float64 `json:"top_p,omitempty"`       // default 1
}

// Stop says where a sample ends: nowhere but at its limit when it is Set and empty, at end tokens when it is not.
type Stop struct {
	Set    bool
	Texts  []string
	Tokens []int32
}

// UnmarshalJSON reads a text, a list of texts, a list of ids, or null.
func (s *Stop) UnmarshalJSON(data []byte) error {
	*s = Stop{Set: true}
	var text *string
	if json.Unmarshal(data, &text) == nil {
		if s.Set = text != nil; s.Set {
			s.Texts = []string{*text}
		}
		return nil
	}
	if json.Unmarshal(data, &s.Tokens) == nil {
		return nil
	}
	s.Tokens = nil
	if json.Unmarshal(data, &s.Texts) != nil {
		return errors.New("stop is neither a text nor a list of texts or of token ids")
	}
	return nil
}

// MarshalJSON is the reverse.
func (s Stop) MarshalJSON() ([]byte, error) {
	switch {
	case !s.Set:
		return []byte("null"), nil
	case len(s.Texts) > 0:
		return json.Marshal(s.Texts)
	case len(s.Tokens) > 0:
		return json.Marshal(s.Tokens)
	}
	return []byte("[]"), nil
}

// StopLength and StopStop say why a sample ended.
const (
	StopStop   = "stop"
	StopLength = "length"
)

// SampleOutput is the result of a sample request.
type SampleOutput struct {
	Sequences []Sequence
	// PromptLogprobs has one entry for each token of the prompt, NaN where there is none. nil when they were not asked
	// for.
	PromptLogprobs []float32
	// TopPromptLogprobs are the likeliest tokens at each position of the prompt.
	TopPromptLogprobs *TopLogprobs
}

// Sequence is one sample.
type Sequence struct {
	StopReason  string
	Tokens      []int32
	Logprobs    []float32 // nil when there are none
	TopLogprobs *TopLogprobs
}

// TopLogprobs are the K likeliest tokens of each position, in rows of K.
type TopLogprobs struct {
	K        int
	IDs      []int32
	Logprobs []float32
}

// noLogprob fills the places of [TopLogprobs] without a token, whose id is 0.
const noLogprob = -99999

// Rows is the number of positions.
func (t *TopLogprobs) Rows() int { return len(t.IDs) / max(t.K, 1) }

// Set writes the tokens of a position, at most K.
func (t *TopLogprobs) Set(row int, ids []int32, logprobs []float32) {
	copy(t.IDs[row*t.K:(row+1)*t.K], ids)
	copy(t.Logprobs[row*t.K:(row+1)*t.K], logprobs)
}

// NewTopLogprobs returns rows without tokens.
func NewTopLogprobs(rows, k int) *TopLogprobs {
	t := &TopLogprobs{K: k, IDs: make([]int32, rows*k), Logprobs: make([]float32, rows*k)}
	for i := range t.Logprobs {
		t.Logprobs[i] = noLogprob
	}
	return t
}

// Proto writes the message SampleResponse.
func (o *SampleOutput) Proto() []byte {
	var b []byte
	for i := range o.Sequences {
		s := &o.Sequences[i]
		reason := int64(0)
		if s.StopReason == StopLength {
			reason = 1
		}
		m := appendBytes(appendInteger(nil, 1, reason), 2, putInts(s.Tokens))
		if s.Logprobs != nil {
			m = appendBytes(m, 3, putFloats(s.Logprobs))
		}
		b = appendBytes(b, 1, s.TopLogprobs.appendTo(m, 4))
	}
	if o.PromptLogprobs != nil {
		b = appendBytes(b, 2, putFloats(o.PromptLogprobs))
	}
	return o.TopPromptLogprobs.appendTo(b, 3)
}

// appendTo writes the message TopkLogprobs as a field.
func (t *TopLogprobs) appendTo(b []byte, number protowire.Number) []byte {
	if t == nil {
		return b
	}
	m := appendBytes(nil, 1, putInts(t.IDs))
	m = appendBytes(m, 2, putFloats(t.Logprobs))
	m = appendInteger(appendInteger(m, 3, int64(t.K)), 4, int64(t.Rows()))
	return appendBytes(b, number, m)
}

// ParseSampleOutput reads the message SampleResponse.
func ParseSampleOutput(message []byte) (*SampleOutput, error) {
	o := &SampleOutput{}
	err := eachField(message, func(f field) (err error) {
		switch f.number {
		case 1:
			var s Sequence
			s, err = parseSequence(f.bytes())
			o.Sequences = append(o.Sequences, s)
		case 2:
			o.PromptLogprobs, err = floats(f.bytes())
		case 3:
			o.TopPromptLogprobs, err = parseTop(f.bytes())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the body is no SampleResponse: %w", err)
	}
	return o, nil
}

// parseSequence reads the message SampledSequence.
func parseSequence(message []byte) (s Sequence, err error) {
	s.StopReason = StopStop
	err = eachField(message, func(f field) (err error) {
		switch f.number {
		case 1:
			if f.integer() == 1 {
				s.StopReason = StopLength
			}
		case 2:
			s.Tokens, err = ints(f.bytes())
		case 3:
			s.Logprobs, err = floats(f.bytes())
		case 4:
			s.TopLogprobs, err = parseTop(f.bytes())
		}
		return err
	})
	return s, err
}

// parseTop reads the message TopkLogprobs.
func parseTop(message []byte) (*TopLogprobs, error) {
	t, rows := &TopLogprobs{}, int64(0)
	err := eachField(message, func(f field) (err error) {
		switch f.number {
		case 1:
			t.IDs, err = ints(f.bytes())
		case 2:
			t.Logprobs, err = floats(f.bytes())
		case 3:
			t.K = int(int32(f.integer()))
		case 4:
			rows = f.integer()
		}
		return err
	})
	if err == nil && (t.K < 0 || rows < 0 || rows > math.MaxInt32 || int64(len(t.IDs)) != rows*int64(t.K) ||
		len(t.IDs) != len(t.Logprobs)) {
		err = fmt.Errorf("%d ids and %d logprobs for %d rows of %d", len(t.IDs), len(t.Logprobs), rows, t.K)
	}
	return t, err
}
