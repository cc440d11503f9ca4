package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
)

// Loss is what training minimises: a function of the logprobs of trained tokens. The trainer knows nothing else of it,
// so a new loss is a new implementation. What it may use of a token is in [LossInputs].
//
// A loss over pairs of sequences or over a whole batch, which micro-batches would cut apart, is a [BatchLoss].
type Loss interface {
	// Validate lists every problem of its configuration.
	Validate() error
	// Spec describes a valid loss.
	Spec() LossSpec
	// Build builds the loss, a scalar, and its metrics, scalars by the names that Spec declares. Values are of one
	// micro-batch. Padding is 0 in all inputs.
	Build(in LossInputs) (loss *Node, metrics map[string]*Node)
}

// LossSpec describes a loss.
type LossSpec struct {
	// Key identifies the graph: losses of equal keys build equal graphs, and share one that is compiled.
	Key string
	// Metrics are the quantities that Build measures, at least one.
	Metrics []Metric
	// Sampled says that the tokens were sampled by a policy, whose logprobs are in Old. The trainer then reports by how
	// much they differ from its own.
	Sampled bool
	// Reference says that the loss uses LossInputs.Reference: every sequence must have them. Train of backend/local then
	// computes them, at the price of a forward pass: of the base model, or of the step that KL.Step or KL.Lag of
	// art.TrainConfig say. KL.Coef adds a penalty to the loss, and may be 0.
	Reference bool
	// Entropy says that the loss uses LossInputs.Entropy, which costs a softmax over the vocabulary with its gradient.
	Entropy bool
}

// LossInputs are what a loss is computed from. Numbers have the same floating-point dtype.
type LossInputs struct {
	New       *Node // [N] logprob of the token under the policy being trained
	Old       *Node // [N] logprob of the token that ratios are taken against; 0 where no policy sampled it
	Advantage *Node // [N]
	Weight    *Node // [N]
	Mask      *Node // [N] 1 for a token, 0 for padding and for a token of weight 0, which becomes padding
	Behavior  *Node // [N] logprob under the distribution that was sampled from; see Sequence
	Reference *Node // [N] logprob under the reference policy; 0 where there is none
	Entropy   *Node // [N] of the whole distribution that the token is drawn from, in nats; nil unless LossSpec.Entropy
	// Sequence is the index of the sequence that a token belongs to, [N, 1] int32.
	Sequence *Node
	// Denominator is a scalar: the number of trained tokens of the whole batch that one optimizer step sees (NumTrained).
	// Weights are divided by it already. Losses and gradients of micro-batches so add up to those of the batch.
	Denominator *Node // []
}

// Mean builds the weighted mean [] of a loss per token [N] over the batch: weights add up to 1 there, unless
// credit.NormalizeConfig says otherwise.
//
//	Σ perToken·Weight
func (in LossInputs) Mean(perToken *Node) *Node { return ReduceAllSum(Mul(perToken, in.Weight)) }

// SequenceSum builds, for each token [N], the sum of x [N] over the trained tokens of its sequence.
func (in LossInputs) SequenceSum(x *Node) *Node {
	if in.Sequence == nil {
		panic("grpo: a loss over sequences needs LossInputs.Sequence")
	}
	sums := ScatterSum(ZerosLike(x), in.Sequence, Mul(x, in.Mask), false, false) // there are at most N sequences
	return Mul(Gather(sums, in.Sequence), in.Mask)
}

// SequenceMean builds, for each token [N], the mean of x [N] over the trained tokens of its sequence; 0 for padding.
func (in LossInputs) SequenceMean(x *Node) *Node {
	return Div(in.SequenceSum(x), MaxScalar(in.SequenceSum(in.Mask), 1))
}

// BuildLoss builds a loss [] and its metrics, one vector in the order of its spec: a single transfer from the device.
// Padded tokens may hold anything in the inputs, NaN included; they add nothing to loss, metrics or gradients.
func BuildLoss(l Loss, in LossInputs) (loss, metrics *Node) {
	if err := l.Validate(); err != nil {
		panic(err)
	}
	spec := l.Spec()
	loss, values := l.Build(unpad(in))
	loss.AssertScalar()
	if len(values) != len(spec.Metrics) || len(values) == 0 {
		panic(fmt.Errorf("grpo: loss %q builds %d metrics and declares %d: want as many, and at least one", spec.Key,
			len(values), len(spec.Metrics)))
	}
	var list []*Node
	for _, m := range spec.Metrics {
		value, ok := values[m.Name]
		if !ok {
			panic(fmt.Errorf("grpo: loss %q declares the metric %q and does not build it", spec.Key, m.Name))
		}
		value.AssertScalar()
		list = append(list, value)
	}
	return loss, Stack(list, 0)
}

// unpad replaces everything at padded tokens by 0, so that garbage there reaches neither value nor gradient (0·NaN is
// NaN, a selection is not). A padded token is then an on-policy one of advantage and weight 0.
func unpad(in LossInputs) LossInputs {
	n := in.New.Shape().Dim(0)
	for _, x := range []*Node{in.New, in.Old, in.Advantage, in.Weight, in.Mask} {
		x.AssertDims(n)
	}
	in.Denominator.AssertScalar()
	real := GreaterThan(in.Mask, ZerosLike(in.Mask))
	zero := ScalarZero(in.New.Graph(), in.New.DType())
	for _, x := range []**Node{&in.New, &in.Old, &in.Advantage, &in.Weight, &in.Behavior, &in.Reference, &in.Entropy} {
		if *x != nil {
			(*x).AssertDims(n)
			*x = Where(real, *x, zero)
		}
	}
	return in
}

// BatchLoss is a [Loss] of pairs of sequences, or of all that one optimizer step sees: more than a micro-batch holds.
// It is linearised. Before each optimizer step the trainer computes the logprobs of its batch and calls Linearize;
// Build then gets the derivatives as advantages. That is exact: where it is taken, the gradient of the linear function
// is the gradient of the loss, and an optimizer step uses no other. It costs a forward pass for each optimizer step,
// and lets micro-batches be cut anywhere.
//
// It is no loss for [Corrected] or [Penalized], inside of which it would not be linearised: their Validate refuses it.
type BatchLoss interface {
	Loss
	// Together is the number of consecutive sequences of a batch that belong to the same optimizer step: 2 for pairs.
	Together() int
	// Linearize returns the sequences of one optimizer step with advantages and weights, and the value of the loss.
	// logprobs are those of the policy being trained, a list for each sequence, per token. The sequences given stay as
	// they are.
	Linearize(batch []Sequence, logprobs [][]float32) (linear []Sequence, value float64)
	// Value describes the value.
	Value() Metric
}

// validateInner reports a loss that cannot be inside of a correction or a penalty: none, an invalid one, or a
// [BatchLoss].
func validateInner(of string, l Loss) error {
	if l == nil {
		return fmt.Errorf("grpo: a %s without a loss", of)
	}
	if _, ok := l.(BatchLoss); ok {
		return fmt.Errorf("grpo: a %s of loss %q, which would not be linearised inside of it", of, l.Spec().Key)
	}
	return l.Validate()
}

// Metric declares a quantity that a loss measures: the name under which it is logged, and how the values of
// micro-batches are combined.
type Metric struct {
	Name      string
	Reduction Reduction
	// Formula, Unit and Healthy are for people: how it is computed, "" for a number without a unit, and what it should be,
	// "" where nothing can be said.
	Formula, Unit, Healthy string
}

// Reduction says how the values of micro-batches become the one that is logged.
type Reduction int

const (
	// MeanOverTokens is their sum, divided by the number of trained tokens. The default.
	MeanOverTokens Reduction = iota
	// MeanOverUpdates is their sum, divided by the number of optimizer steps: for what is divided by a denominator
	// already, such as the loss.
	MeanOverUpdates
	// Maximum is the largest one.
	Maximum
)
