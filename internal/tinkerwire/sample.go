package tinkerwire

import (
	"bytes"
	"encoding/json"
	"errors"
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
		m := appendBytes(appendInteger(nil, 1, reason), 2, put(s.Tokens))
		if s.Logprobs != nil {
			m = appendBytes(m, 3, put(s.Logprobs))
		}
		b = appendBytes(b, 1, s.TopLogprobs.appendTo(m, 4))
	}
	if o.PromptLogprobs != nil {
		b = appendBytes(b, 2, put(o.PromptLogprobs))
	}
	return o.TopPromptLogprobs.appendTo(b, 3)
}

// appendTo writes the message TopkLogprobs as a field.
func (t *TopLogprobs) appendTo(b []byte, number protowire.Number) []byte {
	if t == nil {
		return b
	}
	m := appendBytes(nil, 1, put(t.IDs))
	m = appendBytes(m, 2, put(t.Logprobs))
	m = appendInteger(appendInteger(m, 3, int64(t.K)), 4, int64(t.Rows()))
	return appendBytes(b, number, m)
}

// ParseSampleOutput reads the message SampleResponse.
func ParseSampleOutput(message []byte) (_ *SampleOutput, err error) {
	defer catch(&err, "the body is no SampleResponse: ")
	o := &SampleOutput{}
	for f := range fields(message) {
		switch f.number {
		case 1:
			o.Sequences = append(o.Sequences, parseSequence(f.bytes()))
		case 2:
			o.PromptLogprobs = numbersOf[float32](f.bytes())
		case 3:
			o.TopPromptLogprobs = parseTop(f.bytes())
		}
	}
	return o, nil
}

// parseSequence reads the message SampledSequence.
func parseSequence(message []byte) Sequence {
	s := Sequence{StopReason: StopStop}
	for f := range fields(message) {
		switch f.number {
		case 1:
			if f.integer() == 1 {
				s.StopReason = StopLength
			}
		case 2:
			s.Tokens = numbersOf[int32](f.bytes())
		case 3:
			s.Logprobs = numbersOf[float32](f.bytes())
		case 4:
			s.TopLogprobs = parseTop(f.bytes())
		}
	}
	return s
}

// parseTop reads the message TopkLogprobs.
func parseTop(message []byte) *TopLogprobs {
	t, rows := &TopLogprobs{}, int64(0)
	for f := range fields(message) {
		switch f.number {
		case 1:
			t.IDs = numbersOf[int32](f.bytes())
		case 2:
			t.Logprobs = numbersOf[float32](f.bytes())
		case 3:
			t.K = int(int32(f.integer()))
		case 4:
			rows = f.integer()
		}
	}
	if t.K < 0 || rows < 0 || rows > math.MaxInt32 || int64(len(t.IDs)) != rows*int64(t.K) ||
		len(t.IDs) != len(t.Logprobs) {
		damaged("%d ids and %d logprobs for %d rows of %d", len(t.IDs), len(t.Logprobs), rows, t.K)
	}
	return t
}

// sampleJSON is the form of the JSON dialect.
type sampleJSON struct {
	Type           string         `json:"type"`
	Sequences      []sequenceJSON `json:"sequences"`
	PromptLogprobs []*float32     `json:"prompt_logprobs,omitempty"`
	TopPrompt      [][]pair       `json:"topk_prompt_logprobs,omitempty"`
}

type sequenceJSON struct {
	StopReason string  `json:"stop_reason"`
	Tokens     []int32 `json:"tokens"`
	Logprobs   numbers `json:"logprobs,omitempty"`
}

// numbers are those of which null is NaN, as Python's frameworks write it: 0 would be a probability of 1.
type numbers []float32

// UnmarshalJSON reads a list of numbers and nulls.
func (f *numbers) UnmarshalJSON(data []byte) error {
	*f = nil
	if !bytes.Contains(data, []byte("null")) { // nearly always, and quicker
		return json.Unmarshal(data, (*[]float32)(f))
	}
	var list []*float32
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, x := range list {
		if x == nil {
			x = new(float32(math.NaN()))
		}
		*f = append(*f, *x)
	}
	return nil
}

// pair is a token id and its logprob, [id, logprob].
type pair struct {
	id      int32
	logprob float32
}

func (p pair) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.id, p.logprob}) }

func (p *pair) UnmarshalJSON(data []byte) error {
	var list []float64
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) != 2 || list[0] != math.Trunc(list[0]) || math.Abs(list[0]) > math.MaxInt32 {
		return errors.New("a token with its logprob is not [id, logprob]")
	}
	p.id, p.logprob = int32(list[0]), float32(list[1])
	return nil
}

// MarshalJSON writes the form of the JSON dialect, which has no likeliest tokens of samples.
func (o SampleOutput) MarshalJSON() ([]byte, error) {
	wire := sampleJSON{Type: "sample", Sequences: []sequenceJSON{}}
	for _, s := range o.Sequences {
		tokens := append([]int32{}, s.Tokens...) // a list in JSON, not null
		wire.Sequences = append(wire.Sequences, sequenceJSON{s.StopReason, tokens, s.Logprobs})
	}
	for _, x := range o.PromptLogprobs {
		p := &x
		if x != x {
			p = nil
		}
		wire.PromptLogprobs = append(wire.PromptLogprobs, p)
	}
	if t := o.TopPromptLogprobs; t != nil {
		for row := range t.Rows() {
			var list []pair // nil for a position without tokens
			for i := row * t.K; i < (row+1)*t.K; i++ {
				if t.Logprobs[i] != noLogprob {
					list = append(list, pair{t.IDs[i], t.Logprobs[i]})
				}
			}
			wire.TopPrompt = append(wire.TopPrompt, list)
		}
	}
	return json.Marshal(wire)
}

// UnmarshalJSON reads the form of the JSON dialect.
func (o *SampleOutput) UnmarshalJSON(data []byte) error {
	var wire sampleJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*o = SampleOutput{}
	for _, s := range wire.Sequences {
		if s.StopReason != StopStop && s.StopReason != StopLength {
			return errors.New("stop_reason is neither stop nor length")
		}
		o.Sequences = append(o.Sequences, Sequence{StopReason: s.StopReason, Tokens: s.Tokens, Logprobs: s.Logprobs})
	}
	for _, x := range wire.PromptLogprobs {
		if x == nil {
			x = new(float32(math.NaN()))
		}
		o.PromptLogprobs = append(o.PromptLogprobs, *x)
	}
	rows := wire.TopPrompt
	if rows == nil {
		return nil
	}
	k, listed := 0, 0
	for _, row := range rows {
		k, listed = max(k, len(row)), listed+len(row)
	}
	if k > 1<<10 {
		return errors.New("topk_prompt_logprobs has more than 1024 tokens for one position")
	}
	if k*len(rows) > 8*listed+1<<16 { // the table would be much larger than what was sent
		return errors.New("topk_prompt_logprobs has no tokens for most positions")
	}
	o.TopPromptLogprobs = NewTopLogprobs(len(rows), k)
	for i, row := range rows {
		for j, p := range row {
			o.TopPromptLogprobs.IDs[i*k+j], o.TopPromptLogprobs.Logprobs[i*k+j] = p.id, p.logprob
		}
	}
	return nil
}
