package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The kinds of RopeScaling.
const (
	RopeLinear = "linear"
	RopeLlama3 = "llama3"
)

// RopeScaling stretches rotary positions over a context that is longer than the one a model began with.
type RopeScaling struct {
	// Type is [RopeLinear], which divides all frequencies by Factor, or [RopeLlama3], which divides the low ones.
	Type   string  `json:"rope_type"`
	Factor float64 `json:"factor"`

	// Llama 3's: waves that are longer than OriginalPositions / LowFactor are stretched, those that are shorter than
	// OriginalPositions / HighFactor are not, and between the two it changes smoothly.
	LowFactor         float64 `json:"low_freq_factor,omitempty"`
	HighFactor        float64 `json:"high_freq_factor,omitempty"`
	OriginalPositions int     `json:"original_max_position_embeddings,omitempty"`
}

// MarshalJSON writes the factors with a decimal point: transformers 4 warns of others.
func (s RopeScaling) MarshalJSON() ([]byte, error) {
	type plain RopeScaling
	return json.Marshal(struct {
		plain
		Factor     decimal `json:"factor"`
		LowFactor  decimal `json:"low_freq_factor,omitempty"`
		HighFactor decimal `json:"high_freq_factor,omitempty"`
	}{plain(s), decimal(s.Factor), decimal(s.LowFactor), decimal(s.HighFactor)})
}

// ropeKeys are what a RoPE object may hold, by its type.
var ropeKeys = map[string][]string{
	"default":  {"rope_theta"},
	RopeLinear: {"rope_theta", "factor"},
	RopeLlama3: {"rope_theta", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}

// readRope reads the keys of rotary positions: rope_scaling, beside rope_theta, of transformers 4, and rope_parameters of 5,
// which holds both. Gemma 3's has them for each kind of layer.
func (c *Config) readRope(keys map[string]json.RawMessage) error {
	if raw := keys["rope_scaling"]; !absent(raw) {
		_, scaling, err := parseRope(raw)
		if err != nil {
			return fmt.Errorf("rope_scaling: %w", err)
		}
		c.RopeScaling = scaling
	}
	raw := keys["rope_parameters"]
	if absent(raw) {
		return nil
	}
	kinds := struct {
		Full    json.RawMessage `json:"full_attention"`
		Sliding json.RawMessage `json:"sliding_attention"`
	}{}
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return fmt.Errorf("rope_parameters: %w", err)
	}
	if c.ModelType == ModelTypeGemma3 && (kinds.Full != nil || kinds.Sliding != nil) {
		if err := c.takeRope(kinds.Full, "rope_parameters: full_attention"); err != nil {
			return err
		}
		return c.takeLocalRope(kinds.Sliding)
	}
	return c.takeRope(raw, "rope_parameters")
}

// takeRope sets RopeTheta and RopeScaling from an object of transformers 5. A file that has the keys of 4 too must say the same.
func (c *Config) takeRope(raw json.RawMessage, name string) error {
	if absent(raw) {
		return nil
	}
	theta, scaling, err := parseRope(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case theta != 0 && c.RopeTheta != 0 && theta != c.RopeTheta:
		return fmt.Errorf("%s: rope_theta is %v, and %v outside: keep one", name, theta, c.RopeTheta)
	case c.RopeScaling != nil && (scaling == nil || *scaling != *c.RopeScaling):
		return fmt.Errorf("%s differs from rope_scaling: keep one", name)
	case theta != 0:
		c.RopeTheta = theta
	}
	c.RopeScaling = scaling
	return nil
}

// takeLocalRope sets RopeLocalTheta.
func (c *Config) takeLocalRope(raw json.RawMessage) error {
	const name = "rope_parameters: sliding_attention"
	if absent(raw) {
		return nil
	}
	theta, scaling, err := parseRope(raw)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case scaling != nil:
		return fmt.Errorf("%s: rope_type %q is not supported", name, scaling.Type)
	case theta != 0 && c.RopeLocalTheta != 0 && theta != c.RopeLocalTheta:
		return fmt.Errorf("%s: rope_theta is %v, and rope_local_base_freq is %v: keep one", name, theta, c.RopeLocalTheta)
	case theta != 0:
		c.RopeLocalTheta = theta
	}
	return nil
}

// parseRope reads an object with a rope_type, or type, and what goes with it. A key that it does not know is an error.
// scaling is nil for the type "default".
func parseRope(raw json.RawMessage) (theta float64, scaling *RopeScaling, err error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return 0, nil, err
	}
	kind := "default"
	for _, key := range []string{"type", "rope_type"} {
		if v, ok := keys[key]; ok {
			if err := json.Unmarshal(v, &kind); err != nil {
				return 0, nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	known, ok := ropeKeys[kind]
	if !ok {
		return 0, nil, fmt.Errorf("rope_type %q is not supported: this version has default, %s and %s", kind, RopeLinear, RopeLlama3)
	}
	scaling = &RopeScaling{Type: kind}
	fields := map[string]any{
		"rope_theta": &theta, "factor": &scaling.Factor, "low_freq_factor": &scaling.LowFactor,
		"high_freq_factor": &scaling.HighFactor, "original_max_position_embeddings": &scaling.OriginalPositions,
	}
	for key, v := range keys {
		switch {
		case key == "type", key == "rope_type", string(v) == "null":
		case key == "partial_rotary_factor" && slices.Contains(unsupported[key], string(v)):
		case !slices.Contains(known, key):
			return 0, nil, fmt.Errorf("%s is not supported with rope_type %q (found %s)", key, kind, v)
		default:
			if err := json.Unmarshal(v, fields[key]); err != nil {
				return 0, nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if kind == "default" {
		scaling = nil
	}
	return theta, scaling, nil
}

func (s *RopeScaling) check(check checker) {
	check(s.Type == RopeLinear || s.Type == RopeLlama3, "rope_scaling: rope_type %q is not supported: this version has %s and %s", s.Type, RopeLinear, RopeLlama3)
	check(positive(s.Factor), "rope_scaling: factor is %v, want a positive number", s.Factor)
	if s.Type == RopeLlama3 {
		check(positive(s.LowFactor) && positive(s.HighFactor) && s.LowFactor < s.HighFactor,
			"rope_scaling: low_freq_factor is %v and high_freq_factor %v, want positive numbers, the second greater", s.LowFactor, s.HighFactor)
		check(s.OriginalPositions > 0 && s.OriginalPositions <= mostSize,
			"rope_scaling: original_max_position_embeddings is %d, want 1 to %d", s.OriginalPositions, mostSize)
	}
}
