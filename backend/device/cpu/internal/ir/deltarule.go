package ir

import (
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/deltarule"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// Names of the operations that graphs call by name: GoMLX has none for them.
const (
	DeltaRuleName         = "gated_delta_rule"
	DeltaRuleGradientName = "gated_delta_rule_gradient"
)

type (
	// CallAttr has the name of an operation that is called, and the shapes of its results. Its node is the first one.
	CallAttr struct {
		Name    string
		Results []shapes.Shape
	}
	// ResultAttr has the number of a further result of the node that is the operand.
	ResultAttr struct{ Number int }
)

// DeltaTokens is what the gated delta rule reads: of B rows of T tokens, with H heads of V values, and as many or fewer
// heads of K keys. The elements of a head lie together.
type DeltaTokens struct {
	Query, Key  View // [B, T, G, K]: G divides H
	Value       View // [B, T, H, V]
	Decay, Rate View // [B, T, H]
	Count       View // [B] int32: tokens that are no padding
	State       View // [B, H, K, V] or [slots, H, K, V], rows first, or a scalar for zeros
}

// Zeros reports whether rows begin with a state of zeros.
func (d *DeltaTokens) Zeros() bool { return len(d.State.Dims) == 0 }

// DeltaRule computes the gated delta rule: see package deltarule. The states of all rows are there, or slots of which
// each row reads one and writes one. Then the result may be in place of the operand.
type DeltaRule struct {
	Update   // the states
	Tokens   DeltaTokens
	Output   View // [B, T, H, V]
	Slots    bool
	From, To View // [B] int32: the slots of each row
}

// Writes are the outputs and the states.
func (s *DeltaRule) Writes() []*Tensor { return []*Tensor{s.Output.Of, s.Out.Of} }

// DeltaGradient computes the gradients of the gated delta rule without slots.
type DeltaGradient struct {
	Tokens       DeltaTokens
	Output, Next View   // gradients of the outputs, and of the states, or a scalar for zeros
	Results      []View // those of query and key, both [B, T, H, K], value, log(decay), rate and state
	In           []View
}

// Reads are the operands.
func (s *DeltaGradient) Reads() []View { return s.In }

// Writes are the gradients.
func (s *DeltaGradient) Writes() (list []*Tensor) {
	for _, v := range s.Results {
		list = append(list, v.Of)
	}
	return list
}

// deltaBytes is the memory that a worker takes for a head of the gated delta rule; 0 for other steps.
func deltaBytes(s Step) int {
	switch s := s.(type) {
	case *DeltaRule:
		return memory.Round(4 * deltarule.Scratch(s.Tokens.Key.Dims[3]))
	case *DeltaGradient:
		v := s.Tokens.Value.Dims
		return memory.Round(4 * deltarule.GradientScratch(v[1], s.Tokens.Key.Dims[3], v[3]))
	}
	return 0
}
