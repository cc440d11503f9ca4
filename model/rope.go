package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/internal/graphx"
)

// rope configures the rotation of queries and keys of a layer. It is comparable: layers with equal ones share tables.
type rope struct {
	theta   float64
	scaling RopeScaling // the zero value is none
}

// rope returns the configuration of all layers, or of those without a window.
func (c *Config) rope() rope {
	r := rope{theta: c.RopeTheta}
	if c.RopeScaling != nil {
		r.scaling = *c.RopeScaling
	}
	return r
}

// frequency returns the angular frequency, in radians per position, of the i-th of size/2 pairs:
//
//	f = theta^(-2i/size)
//
// Linear scaling divides it by a factor (Chen et al. 2023). Llama 3's does so for wavelengths above OriginalPositions /
// LowFactor, and leaves those below OriginalPositions / HighFactor; in between it is (1-s) f/Factor + s f, with s going
// from 0 to 1 as wavelengths get shorter (Grattafiori et al. 2024).
func (r rope) frequency(i, size int) float64 {
	f := math.Pow(r.theta, -2*float64(i)/float64(size))
	s := r.scaling
	switch s.Type {
	case ropeLinear:
		return f / s.Factor
	case ropeLlama3:
		waves := float64(s.OriginalPositions) * f / (2 * math.Pi) // within the original context
		smooth := min(max((waves-s.LowFactor)/(s.HighFactor-s.LowFactor), 0), 1)
		return (1-smooth)*f/s.Factor + smooth*f
	}
	return f
}

// tables returns, with angle = position * frequency, the rows [cos, cos] and [-sin, sin] of the first n positions, each
// [n, size]. They are computed in float64 on the host, so that every graph and every device uses the same numbers.
func (r rope) tables(n, size int) (cosines, sines []float32) {
	half := size / 2
	cosines, sines = make([]float32, n*size), make([]float32, n*size)
	for i := range half {
		f := r.frequency(i, size)
		for p := range n {
			angle := float64(p) * f
			at := p*size + i
			cosines[at], cosines[at+half] = float32(math.Cos(angle)), float32(math.Cos(angle))
			sines[at], sines[at+half] = -float32(math.Sin(angle)), float32(math.Sin(angle))
		}
	}
	return cosines, sines
}

// ropeNames returns the names of the tables of the kind of RoPE of a number, in the order in which layers have them.
func ropeNames(kind int) (cos, sin string) {
	return fmt.Sprintf("rope.%d.cos", kind), fmt.Sprintf("rope.%d.sin", kind)
}

// RopeTables uploads the tables of rotary embeddings of the first n positions. A graph whose [Forward.Param] has them
// keeps none of its own, so that many graphs share them.
func (c *Config) RopeTables(device compute.Backend, n int) (*Params, error) {
	p := &Params{}
	var kinds []rope
	for _, l := range c.design().layers {
		if l.rope.theta == 0 || slices.Contains(kinds, l.rope) {
			continue
		}
		cosName, sinName := ropeNames(len(kinds))
		kinds, p.Names = append(kinds, l.rope), append(p.Names, cosName, sinName)
		cos, sin := l.rope.tables(n, c.HeadDim)
		for _, data := range [][]float32{cos, sin} {
			t, err := graphx.Upload(device, data, n, c.HeadDim)
			if err != nil {
				return nil, fmt.Errorf("model: RoPE: %w", err)
			}
			p.Tensors = append(p.Tensors, t)
		}
	}
	return p, nil
}

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }

// Types of RopeScaling.
const (
	ropeLinear = "linear"
	ropeLlama3 = "llama3"
)

// RopeScaling extends rotary embeddings to a longer context than a model was first trained with.
type RopeScaling struct {
	// Type is "linear", which divides all frequencies by Factor, or "llama3", which divides the low ones.
	Type   string  `json:"rope_type"`
	Factor float64 `json:"factor"`

	// Llama 3's: wavelengths above OriginalPositions / LowFactor are scaled, those below OriginalPositions / HighFactor
	// are not, and those in between are interpolated.
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

var ropeKeys = map[string][]string{
	"default":  {"rope_theta"},
	ropeLinear: {"rope_theta", "factor"},
	ropeLlama3: {"rope_theta", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
}

// readRope reads the keys of rotary embeddings: rope_scaling and rope_theta of transformers 4, and rope_parameters of
// 5, which holds both. Gemma 3 has one for each kind of layer.
//
// A file with keys of both must mean the same under either: 4 reads rope_scaling only, and 5 lets it replace
// rope_parameters, its theta included.
func (c *Config) readRope(keys map[string]json.RawMessage) error {
	scaled, err := c.readRopeScaling(keys["rope_scaling"])
	if err != nil {
		return err
	}
	if raw := keys["rope_parameters"]; !absent(raw) {
		if err := c.readRopeParameters(raw, scaled); err != nil {
			return err
		}
	}
	// transformers 5 prefers this key to the one inside rope_scaling and rope_parameters.
	raw := keys["original_max_position_embeddings"]
	if absent(raw) || c.RopeScaling == nil || c.RopeScaling.Type != ropeLlama3 {
		return nil
	}
	if inside := c.RopeScaling.OriginalPositions; string(raw) != strconv.Itoa(inside) {
		return fmt.Errorf("original_max_position_embeddings is %s, and %d among the settings of rope_type %q: keep one",
			raw, inside, ropeLlama3)
	}
	return nil
}

// readRopeScaling reads rope_scaling, and reports whether it is there and not empty.
func (c *Config) readRopeScaling(raw json.RawMessage) (bool, error) {
	if absent(raw) {
		return false, nil
	}
	theta, scaling, err := parseRope(raw)
	if err != nil {
		return false, fmt.Errorf("rope_scaling: %w", err)
	}
	if theta != 0 && theta != c.RopeTheta {
		return false,
			fmt.Errorf("rope_scaling: rope_theta is %v, which transformers 4 does not read: set it outside, where it is %v",
				theta, c.RopeTheta)
	}
	c.RopeScaling = scaling
	var keys map[string]json.RawMessage
	return json.Unmarshal(raw, &keys) != nil || len(keys) > 0, nil
}

// readRopeParameters reads rope_parameters. scaled says that there is a rope_scaling too.
func (c *Config) readRopeParameters(raw json.RawMessage, scaled bool) error {
	if c.ModelType == gemma3.modelType {
		return c.readRopeKinds(raw, scaled)
	}
	outside := c.RopeTheta
	if err := c.takeRope(raw, "rope_parameters", scaled); err != nil {
		return err
	}
	if scaled && outside == 0 && c.RopeTheta != 0 {
		return fmt.Errorf("rope_parameters: transformers does not read its rope_theta %v "+
			"beside rope_scaling: remove rope_scaling", c.RopeTheta)
	}
	return nil
}

// readRopeKinds reads Gemma 3's rope_parameters, an object for each kind of layer. transformers 5 ignores other keys.
func (c *Config) readRopeKinds(raw json.RawMessage, scaled bool) error {
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return fmt.Errorf("rope_parameters: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		if key != layerFull && key != layerSliding {
			return fmt.Errorf("rope_parameters: %s is not read for %s, which has an object for each kind of layer: "+
				"move it into %s or %s", key, c.ModelType, layerFull, layerSliding)
		}
	}
	if scaled && absent(kinds[layerFull]) {
		return fmt.Errorf("rope_parameters has no %s for rope_scaling to go into: move rope_scaling there", layerFull)
	}
	if err := c.takeRope(kinds[layerFull], "rope_parameters: "+layerFull, scaled); err != nil {
		return err
	}
	return c.takeLocalRope(kinds[layerSliding])
}

// takeRope sets RopeTheta and RopeScaling from an object of transformers 5, which must agree with the keys of 4.
func (c *Config) takeRope(raw json.RawMessage, name string, scaled bool) error {
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
	case scaled && !reflect.DeepEqual(scaling, c.RopeScaling):
		return fmt.Errorf("%s is %s, and rope_scaling, which transformers prefers, is %s: keep one",
			name, scaling, c.RopeScaling)
	case theta != 0:
		c.RopeTheta = theta
	}
	c.RopeScaling = scaling
	return nil
}

// String describes s for messages. nil is the type "default".
func (s *RopeScaling) String() string {
	if s == nil {
		return `rope_type "default"`
	}
	return fmt.Sprintf("%+v", *s)
}

func (c *Config) takeLocalRope(raw json.RawMessage) error {
	const name = "rope_parameters: " + layerSliding
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

// parseRope reads an object with a rope_type and its settings, all known. scaling is nil for the type "default".
func parseRope(raw json.RawMessage) (theta float64, scaling *RopeScaling, err error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return 0, nil, err
	}
	kind, err := ropeKind(keys)
	if err != nil {
		return 0, nil, err
	}
	known, ok := ropeKeys[kind]
	if !ok {
		return 0, nil, fmt.Errorf("rope_type %q is not supported: this version has default, %s and %s", kind, ropeLinear,
			ropeLlama3)
	}
	scaling = &RopeScaling{Type: kind}
	fields := map[string]any{
		"rope_theta": &theta, "factor": &scaling.Factor, "low_freq_factor": &scaling.LowFactor,
		"high_freq_factor": &scaling.HighFactor, "original_max_position_embeddings": &scaling.OriginalPositions,
	}
	for key, v := range keys {
		switch {
		case key == "type", key == "rope_type", string(v) == "null":
		case key == "partial_rotary_factor" && !changesForward(key, v):
		case !slices.Contains(known, key):
			return 0, nil, fmt.Errorf("%s is not supported with rope_type %q (found %s)", key, kind, v)
		default:
			if err := json.Unmarshal(v, fields[key]); err != nil {
				return 0, nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if raw := keys["rope_theta"]; !absent(raw) && !positive(theta) {
		return 0, nil, fmt.Errorf("rope_theta is %s, want a positive number", raw)
	}
	if kind == "default" {
		scaling = nil
	}
	return theta, scaling, nil
}

// ropeKind reads the type of a RoPE object. Of two names transformers 4 prefers the older, type, and 5 the newer.
func ropeKind(keys map[string]json.RawMessage) (string, error) {
	kind := ""
	for _, key := range []string{"type", "rope_type"} {
		if absent(keys[key]) {
			continue
		}
		before := kind
		if err := json.Unmarshal(keys[key], &kind); err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
		if before != "" && before != kind {
			return "", fmt.Errorf("type is %q and rope_type %q: keep one", before, kind)
		}
	}
	return cmp.Or(kind, "default"), nil
}

func (s *RopeScaling) check(check checker) {
	check(s.Type == ropeLinear || s.Type == ropeLlama3,
		"rope_scaling: rope_type %q is not supported: this version has %s and %s", s.Type, ropeLinear, ropeLlama3)
	check(positive(s.Factor), "rope_scaling: factor is %v, want a positive number", s.Factor)
	if s.Type == ropeLlama3 {
		check(positive(s.LowFactor) && positive(s.HighFactor) && s.LowFactor < s.HighFactor,
			"rope_scaling: low_freq_factor is %v and high_freq_factor %v, want positive numbers, the second greater",
			s.LowFactor, s.HighFactor)
		check(s.OriginalPositions > 0 && s.OriginalPositions <= mostSize,
			"rope_scaling: original_max_position_embeddings is %d, want 1 to %d", s.OriginalPositions, mostSize)
	}
}
