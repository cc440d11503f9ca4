package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Types of RopeScaling.
const (
	ropeLinear  = "linear"
	ropeDynamic = "dynamic"
	ropeYarn    = "yarn"
	ropeLong    = "longrope"
	ropeLlama3  = "llama3"
)

// RopeScaling extends rotary embeddings to a longer context than a model was first trained with. Fields that its Type
// does not have are zero.
type RopeScaling struct {
	// Type is "linear", which divides all frequencies by Factor; "llama3", which divides the low ones; "yarn", which
	// divides the low ones otherwise and scales attention; "longrope", which divides each by a number of its own; or
	// "dynamic", which raises RopeTheta by the length of the context, see [Config.WithContext].
	Type   string  `json:"rope_type"`
	Factor float64 `json:"factor,omitempty"` // 0 for LongRoPE is MaxPositions / OriginalPositions

	// Llama 3's: wavelengths above OriginalPositions / LowFactor are scaled, those below OriginalPositions / HighFactor
	// are not, and those in between are interpolated.
	LowFactor  float64 `json:"low_freq_factor,omitempty"`
	HighFactor float64 `json:"high_freq_factor,omitempty"`
	// OriginalPositions is the context that the model was first trained with. Also of YaRN and LongRoPE.
	OriginalPositions int `json:"original_max_position_embeddings,omitempty"`

	// AttentionFactor multiplies cosines and sines, of YaRN and LongRoPE. 0 is the usual one for Factor.
	AttentionFactor float64 `json:"attention_factor,omitempty"`
	// YaRN's: pairs that turn more than BetaFast times within the original context keep their frequencies, and those that
	// turn less than BetaSlow times have them divided. 0 is 32 and 1.
	BetaFast float64 `json:"beta_fast,omitempty"`
	BetaSlow float64 `json:"beta_slow,omitempty"`
	// MScale and MScaleAllDim, if both are set, are what the usual AttentionFactor of YaRN is computed from.
	MScale       float64 `json:"mscale,omitempty"`
	MScaleAllDim float64 `json:"mscale_all_dim,omitempty"`
	Truncate     *bool   `json:"truncate,omitempty"` // the ramp of YaRN begins and ends at whole pairs; nil is true

	// LongRoPE's: what the frequency of each pair is divided by, in a context up to OriginalPositions and in longer ones.
	ShortFactors []float64 `json:"short_factor,omitempty"`
	LongFactors  []float64 `json:"long_factor,omitempty"`

	// Alpha of "dynamic" in HunYuan's models, where it raises RopeTheta once, whatever the context.
	Alpha float64 `json:"alpha,omitempty"`
}

// originalKey is the key of OriginalPositions. It may be beside a RoPE object too.
const originalKey = "original_max_position_embeddings"

// longRope reports whether the model has LongRoPE.
func (c *Config) longRope() bool { return c.RopeScaling != nil && c.RopeScaling.Type == ropeLong }

// ropeKeys are the keys of a RoPE object of each type, beside its type and theta.
var ropeKeys = map[string][]string{
	"default":   nil,
	ropeLinear:  {"factor"},
	ropeDynamic: {"factor"},
	ropeYarn: {"factor", originalKey, "attention_factor", "beta_fast", "beta_slow", "mscale",
		"mscale_all_dim", "truncate"},
	ropeLong:   {"factor", originalKey, "attention_factor", "short_factor", "long_factor"},
	ropeLlama3: {"factor", "low_freq_factor", "high_freq_factor", originalKey},
}

// ropeForm is what a family reads of RoPE beyond the keys of all; how its layers pair numbers says [rope].
type ropeForm struct {
	// kinds says that rope_parameters has an object for each kind of layer.
	kinds bool
	// partial is the default of partial_rotary_factor. 0: heads are rotated whole, and the key is not read.
	partial float64
	// alpha says that a "dynamic" scaling may have an alpha. transformers then ignores its other keys, which are YaRN's.
	alpha bool
	// long says that "su" and "yarn" are older names of LongRoPE, the only type of the family.
	long bool
}

// keys returns the keys of a RoPE object of a type; ok is false where the family does not have it.
func (f ropeForm) keys(kind string) (keys []string, ok bool) {
	keys, ok = ropeKeys[kind]
	if f.alpha && kind == ropeDynamic {
		keys = append(slices.Clone(keys), "alpha", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
	}
	if f.long && kind != "default" {
		ok = kind == ropeLong
	}
	return keys, ok
}

// MarshalJSON writes factors with a decimal point: transformers 4 warns of others.
func (s RopeScaling) MarshalJSON() ([]byte, error) {
	type plain RopeScaling
	return json.Marshal(struct {
		plain
		Factor          decimal `json:"factor,omitempty"`
		LowFactor       decimal `json:"low_freq_factor,omitempty"`
		HighFactor      decimal `json:"high_freq_factor,omitempty"`
		AttentionFactor decimal `json:"attention_factor,omitempty"`
		BetaFast        decimal `json:"beta_fast,omitempty"`
		BetaSlow        decimal `json:"beta_slow,omitempty"`
	}{
		plain(s), decimal(s.Factor), decimal(s.LowFactor), decimal(s.HighFactor), decimal(s.AttentionFactor),
		decimal(s.BetaFast), decimal(s.BetaSlow),
	})
}

// String describes s for messages. nil is the type "default".
func (s *RopeScaling) String() string {
	if s == nil {
		return `rope_type "default"`
	}
	data, err := json.Marshal(s)
	if err != nil { // a number that JSON does not have
		return fmt.Sprintf("rope_type %q", s.Type)
	}
	return string(data)
}

const usualFast, usualSlow = 32, 1

// betas returns BetaFast and BetaSlow.
func (s *RopeScaling) betas() (fast, slow float64) {
	return cmp.Or(s.BetaFast, usualFast), cmp.Or(s.BetaSlow, usualSlow)
}

// mscale is m(Factor, k), see [rope.attention].
func (s *RopeScaling) mscale(k float64) float64 {
	if s.Factor <= 1 {
		return 1
	}
	return 1 + 0.1*k*math.Log(s.Factor)
}

// ropeReader reads the keys of rotary embeddings of a file: rope_scaling and rope_theta of transformers 4, and
// rope_parameters of 5, which holds both, for each kind of layer in some families. What both versions read must be the
// same to both: 4 reads rope_scaling only, and 5 lets it replace rope_parameters, its theta included.
type ropeReader struct {
	*Config
	form     ropeForm
	original int  // of the key beside those objects; 0: absent
	scaled   bool // there is a rope_scaling, and it is not empty
}

// readRope reads the keys of rotary embeddings of a family.
func (c *Config) readRope(keys map[string]json.RawMessage, form ropeForm) error {
	r := ropeReader{Config: c, form: form}
	if raw := keys[originalKey]; !absent(raw) {
		if err := json.Unmarshal(raw, &r.original); err != nil {
			return fmt.Errorf("%s: %w", originalKey, err)
		}
		if r.original < 1 {
			return fmt.Errorf("%s is %s, want a positive number", originalKey, raw)
		}
	}
	if _, err := positiveKey(keys, "partial_rotary_factor"); err != nil {
		return err
	}
	if err := r.readScaling(keys["rope_scaling"]); err != nil {
		return fmt.Errorf("rope_scaling: %w", err)
	}
	if raw := keys["rope_parameters"]; !absent(raw) {
		if err := r.readParameters(raw); err != nil {
			return fmt.Errorf("rope_parameters: %w", err)
		}
	}
	if c.PartialRotaryFactor == 0 {
		c.PartialRotaryFactor = form.partial
	}
	return nil
}

// readScaling reads rope_scaling.
func (r *ropeReader) readScaling(raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	o, err := r.parse(raw)
	switch {
	case err != nil:
		return err
	case o.theta != 0 && o.theta != r.RopeTheta:
		return fmt.Errorf("rope_theta is %v, which transformers 4 does not read: set it outside, where it is %v", o.theta,
			r.RopeTheta)
	case o.partial != 0 && o.partial != r.PartialRotaryFactor:
		return fmt.Errorf("partial_rotary_factor is %v, which transformers 4 does not read: set it outside, where it is %v",
			o.partial, r.PartialRotaryFactor)
	}
	if err := r.takeOriginal(o.scaling, true, r.form.kinds); err != nil {
		return err
	}
	r.RopeScaling, r.scaled = o.scaling, !o.empty
	return nil
}

// readParameters reads rope_parameters. transformers 5 ignores other keys beside those of kinds of layers.
func (r *ropeReader) readParameters(raw json.RawMessage) error {
	if !r.form.kinds {
		outside := r.RopeTheta
		if err := r.take(raw); err != nil {
			return err
		}
		if r.scaled && outside == 0 && r.RopeTheta != 0 {
			return fmt.Errorf("transformers does not read its rope_theta %v beside rope_scaling: remove rope_scaling",
				r.RopeTheta)
		}
		return nil
	}
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(raw, &kinds); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		if key != layerFull && key != layerSliding {
			return fmt.Errorf("%s is not read for %s, which has an object for each kind of layer: move it into %s or %s", key,
				r.ModelType, layerFull, layerSliding)
		}
	}
	if r.scaled && absent(kinds[layerFull]) {
		return fmt.Errorf("it has no %s for rope_scaling to go into: move rope_scaling there", layerFull)
	}
	if err := r.take(kinds[layerFull]); err != nil {
		return fmt.Errorf("%s: %w", layerFull, err)
	}
	if err := r.takeLocal(kinds[layerSliding]); err != nil {
		return fmt.Errorf("%s: %w", layerSliding, err)
	}
	return nil
}

// take sets theta and scaling from an object of transformers 5, which must agree with the keys of 4.
func (r *ropeReader) take(raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	o, err := r.parse(raw)
	if err != nil {
		return err
	}
	if err := r.takeOriginal(o.scaling, false, r.form.kinds); err != nil {
		return err
	}
	switch {
	case o.theta != 0 && r.RopeTheta != 0 && o.theta != r.RopeTheta:
		return fmt.Errorf("rope_theta is %v, and %v outside: keep one", o.theta, r.RopeTheta)
	case o.partial != 0 && r.PartialRotaryFactor != 0 && o.partial != r.PartialRotaryFactor:
		return fmt.Errorf("partial_rotary_factor is %v, and %v outside: keep one", o.partial, r.PartialRotaryFactor)
	case r.scaled && !reflect.DeepEqual(o.scaling, r.RopeScaling):
		return fmt.Errorf("it is %s, and rope_scaling, which transformers prefers, is %s: keep one", o.scaling, r.RopeScaling)
	}
	r.RopeTheta, r.PartialRotaryFactor = cmp.Or(o.theta, r.RopeTheta), cmp.Or(o.partial, r.PartialRotaryFactor)
	r.RopeScaling = o.scaling
	return nil
}

// takeLocal sets theta of layers with a window.
func (r *ropeReader) takeLocal(raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	o, err := r.parse(raw)
	switch {
	case err != nil:
		return err
	case o.scaling != nil:
		return fmt.Errorf("rope_type %q is not supported", o.scaling.Type)
	case o.theta != 0 && r.RopeLocalTheta != 0 && o.theta != r.RopeLocalTheta:
		return fmt.Errorf("rope_theta is %v, and rope_local_base_freq is %v: keep one", o.theta, r.RopeLocalTheta)
	}
	r.RopeLocalTheta = cmp.Or(o.theta, r.RopeLocalTheta)
	return nil
}

// takeOriginal sets OriginalPositions, and what follows from them. transformers 4 reads those of LongRoPE from beside
// rope_scaling only, and others from within only; 5 prefers those beside an object, and ignores them with kinds of
// layers. Both take MaxPositions where there are none.
func (r *ropeReader) takeOriginal(s *RopeScaling, old, kinds bool) error {
	if s == nil || !slices.Contains(ropeKeys[s.Type], originalKey) {
		return nil
	}
	inside, outside := s.OriginalPositions, r.original
	if s.Type == ropeLlama3 && inside == 0 && (old || outside == 0) {
		return nil // an error of check: 4 needs it
	}
	if inside != 0 && outside != 0 && inside != outside {
		return fmt.Errorf("original_max_position_embeddings is %d, and %d among the settings of rope_type %q: keep one",
			outside, inside, s.Type)
	}
	read4, read5 := inside, cmp.Or(outside, inside)
	if s.Type == ropeLong {
		read4 = outside
	}
	if kinds {
		read5 = inside
	}
	read4, read5 = cmp.Or(read4, r.MaxPositions), cmp.Or(read5, r.MaxPositions)
	if old && read4 != read5 {
		return fmt.Errorf("transformers 4 takes original_max_position_embeddings of rope_type %q for %d, and 5 for %d: set "+
			"it within rope_scaling and beside it", s.Type, read4, read5)
	}
	s.OriginalPositions = read5
	if read5 <= 0 { // an error of check
		return nil
	}
	ratio := float64(r.MaxPositions) / float64(read5)
	switch {
	case s.Type == ropeYarn && s.Factor == 0:
		s.Factor = ratio
	case s.Type != ropeLong || s.AttentionFactor != 0 || s.Factor == 0 || s.Factor == ratio:
	case old && outside != 0:
		return fmt.Errorf("transformers 4 takes factor of rope_type %q for max_position_embeddings / "+
			"original_max_position_embeddings, %v, and 5 for %v: keep one, or set attention_factor", s.Type, ratio, s.Factor)
	default: // said in a way that 4 reads too
		s.AttentionFactor = rope{scaling: s, positions: r.MaxPositions}.attention()
	}
	return nil
}

// ropeObject is an object with a rope_type and its settings.
type ropeObject struct {
	theta, partial float64      // 0: absent
	scaling        *RopeScaling // nil for the type "default"
	empty          bool
}

// parse reads an object, whose keys are all known.
func (r *ropeReader) parse(raw json.RawMessage) (o ropeObject, err error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return o, err
	}
	o.empty = len(keys) == 0
	kind, err := ropeKind(keys, r.form)
	if err != nil {
		return o, err
	}
	if o.theta, err = positiveKey(keys, "rope_theta"); err != nil {
		return o, err
	}
	if r.form.partial != 0 {
		if o.partial, err = positiveKey(keys, "partial_rotary_factor"); err != nil {
			return o, err
		}
	}
	settings, err := ropeSettings(keys, kind, r.form)
	if err != nil || kind == "default" {
		return o, err
	}
	data, err := json.Marshal(settings)
	if err != nil {
		return o, err
	}
	o.scaling = &RopeScaling{}
	if err := json.Unmarshal(data, o.scaling); err != nil {
		return o, err
	}
	o.scaling.Type = kind
	switch t := o.scaling.Truncate; {
	case t != nil && *t:
		o.scaling.Truncate = nil
	case t != nil && r.form.kinds:
		return o, errors.New("truncate is false, which transformers 5 does not read in an object for a kind of layer")
	}
	return o, nil
}

// positiveKey reads a number. 0: it is absent.
func positiveKey(keys map[string]json.RawMessage, key string) (x float64, err error) {
	raw := keys[key]
	if absent(raw) {
		return 0, nil
	}
	if err := json.Unmarshal(raw, &x); err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	if !positive(x) {
		return 0, fmt.Errorf("%s is %s, want a positive number", key, raw)
	}
	return x, nil
}

// zeroIsNone are the settings of which transformers takes 0 for none.
var zeroIsNone = []string{"beta_fast", "beta_slow", "mscale", "mscale_all_dim", "alpha"}

// ropeSettings returns the settings of a type; others are errors.
func ropeSettings(keys map[string]json.RawMessage, kind string, form ropeForm) (map[string]json.RawMessage, error) {
	known, ok := form.keys(kind)
	if !ok {
		return nil, fmt.Errorf("rope_type %q is not supported: %s", kind, ropeTypes)
	}
	beside := []string{"type", "rope_type", "rope_theta"}
	if form.partial != 0 || slices.Contains(one, string(keys["partial_rotary_factor"])) {
		beside = append(beside, "partial_rotary_factor")
	}
	settings := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v := keys[key]
		switch {
		case key == "truncate" && string(v) == "null": // false to Python
			settings[key] = json.RawMessage("false")
		case string(v) == "null", slices.Contains(beside, key):
		case !slices.Contains(known, key):
			return nil, fmt.Errorf("%s is not supported with rope_type %q (found %s)", key, kind, v)
		case strings.Trim(string(v), "-0.") == "" && !slices.Contains(zeroIsNone, key):
			return nil, fmt.Errorf("%s is %s, want a positive number", key, v)
		default:
			settings[key] = v
		}
	}
	return settings, nil
}

// ropeKind reads the type of a RoPE object. Of two names transformers 4 prefers the older, type, and 5 the newer.
func ropeKind(keys map[string]json.RawMessage, form ropeForm) (string, error) {
	kind := ""
	for _, key := range []string{"type", "rope_type"} {
		if absent(keys[key]) {
			continue
		}
		before := kind
		if err := json.Unmarshal(keys[key], &kind); err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
		if form.long && (kind == "su" || kind == ropeYarn) {
			kind = ropeLong
		}
		if before != "" && before != kind {
			return "", fmt.Errorf("type is %q and rope_type %q: keep one", before, kind)
		}
	}
	return cmp.Or(kind, "default"), nil
}

const ropeTypes = "this version has default, linear, dynamic, yarn, longrope and llama3"

// mostFactor bounds factors: others leave no angle that float32 can tell from its neighbours.
const mostFactor = 1 << 20

// check reports what is wrong with the scaling of a model.
func (s *RopeScaling) check(c *Config, form ropeForm, check checker) {
	known, ok := form.keys(s.Type)
	check(ok && s.Type != "default", "rope_scaling: rope_type %q is not supported: %s", s.Type, ropeTypes)
	if !ok {
		return
	}
	s.checkNumbers(known, check)
	size, pairs := c.rope().size, 0
	fast, slow := s.betas()
	switch s.Type {
	case ropeLlama3:
		check(s.LowFactor < s.HighFactor, "rope_scaling: low_freq_factor is %v and high_freq_factor %v, want the second "+
			"greater", s.LowFactor, s.HighFactor)
	case ropeDynamic:
		check(size > 2, "rope_scaling: rope_type %q needs more than the %d numbers of a head that are rotated", s.Type, size)
	case ropeYarn:
		check(fast >= slow, "rope_scaling: beta_fast is %v and beta_slow %v, want the first greater", fast, slow)
		check(c.RopeTheta > 1, "rope_theta is %v, want more than 1 with rope_type %q", c.RopeTheta, s.Type)
	case ropeLong:
		pairs = size / 2
		check(s.OriginalPositions != 1 || s.AttentionFactor != 0,
			"rope_scaling: original_max_position_embeddings is 1: set attention_factor, which cannot be computed from that")
	}
	check(s.Type == ropeYarn || s.Truncate == nil, "rope_scaling: truncate is not supported with rope_type %q", s.Type)
	for key, list := range map[string][]float64{"short_factor": s.ShortFactors, "long_factor": s.LongFactors} {
		check(len(list) == pairs, "rope_scaling: %s has %d numbers, want one for each of the %d pairs of rope_type %q", key,
			len(list), pairs, s.Type)
		if bad := slices.IndexFunc(list, func(x float64) bool { return !isFactor(x) }); bad >= 0 {
			check(false, "rope_scaling: %s is %v for pair %d, want a positive number up to %d", key, list[bad], bad, mostFactor)
		}
	}
}

func isFactor(x float64) bool { return x >= 1./mostFactor && x <= mostFactor }

// checkNumbers checks those that a type has, and that there are no others.
func (s *RopeScaling) checkNumbers(known []string, check checker) {
	optional := append([]string{"attention_factor"}, zeroIsNone...)
	if s.Type == ropeLong {
		optional = append(optional, "factor")
	}
	for key, x := range map[string]float64{
		"factor": s.Factor, "low_freq_factor": s.LowFactor, "high_freq_factor": s.HighFactor,
		"attention_factor": s.AttentionFactor, "beta_fast": s.BetaFast, "beta_slow": s.BetaSlow, "mscale": s.MScale,
		"mscale_all_dim": s.MScaleAllDim, "alpha": s.Alpha, originalKey: float64(s.OriginalPositions),
	} {
		switch {
		case !slices.Contains(known, key):
			check(x == 0, "rope_scaling: %s is not supported with rope_type %q (found %v)", key, s.Type, x)
		case key == originalKey:
			check(x >= 1 && x <= mostSize, "rope_scaling: %s is %v, want 1 to %d", key, x, mostSize)
		case x == 0 && slices.Contains(optional, key):
		default:
			check(isFactor(x), "rope_scaling: %s is %v, want a positive number up to %d", key, x, mostFactor)
		}
	}
}
