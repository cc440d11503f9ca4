package tinkerwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
)

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
		tokens := s.Tokens
		if tokens == nil {
			tokens = []int32{}
		}
		wire.Sequences = append(wire.Sequences, sequenceJSON{s.StopReason, tokens, s.Logprobs})
	}
	for _, x := range o.PromptLogprobs {
		if x != x {
			wire.PromptLogprobs = append(wire.PromptLogprobs, nil)
		} else {
			wire.PromptLogprobs = append(wire.PromptLogprobs, &x)
		}
	}
	wire.TopPrompt = o.TopPromptLogprobs.pairs()
	return json.Marshal(wire)
}

// pairs returns the tokens of each position, nil for one without.
func (t *TopLogprobs) pairs() (rows [][]pair) {
	if t == nil {
		return nil
	}
	for row := range t.Rows() {
		var list []pair
		for i := row * t.K; i < (row+1)*t.K; i++ {
			if t.Logprobs[i] != noLogprob {
				list = append(list, pair{t.IDs[i], t.Logprobs[i]})
			}
		}
		rows = append(rows, list)
	}
	return rows
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
	return o.unpair(wire.TopPrompt)
}

// unpair is the reverse of pairs.
func (o *SampleOutput) unpair(rows [][]pair) error {
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
