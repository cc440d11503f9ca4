package art

import "context"

// Trainer is a [Backend] with the primitives of training, for a loop of one's own: [Model.ForwardBackward],
// [Model.OptimStep], [Model.SaveWeights], [Model.LoadWeights], [Model.Publish] and [Model.Snapshot]. Names, losses and
// sums are those of the Tinker API, so that the same loop runs on such a service, and a server of it on any Trainer.
//
// Beside the step that answers requests, a registered model has a training state: weights, the moments of the
// optimizer, and gradients that have been added up. It begins as the newest step, without gradients. ForwardBackward
// and OptimStep change it and nothing else; Publish makes it the next step. What is not published or saved ends with
// the process. Several models on one base have training states of their own.
//
// The backend's other ways to make a step ([Model.Train], [Model.TrainSFT], [Model.TrainDPO], [Model.Restore]) begin at
// the newest step. They are an [ErrInvalid] while the training state has updates or gradients that are not published:
// publish it, or load the newest step again.
//
// Calls for one model are executed one at a time, and each takes effect completely or, when it returns an error, not at
// all. Concurrent calls are in no particular order: who needs one waits for each call before the next.
type Trainer interface {
	// Forward computes what ForwardBackward returns, and changes nothing. Arguments are valid for [Model.Forward], and
	// config has every key of the loss. An id that the vocabulary lacks and a datum that is too long for the model or its
	// memory are an [ErrInvalid] before anything is computed.
	Forward(ctx context.Context, m *Model, data []Datum, loss Loss, config LossConfig) (*ForwardResult, error)
	// ForwardBackward computes the loss of data and adds its gradient to those of the training state.
	ForwardBackward(ctx context.Context, m *Model, data []Datum, loss Loss, config LossConfig) (*ForwardResult, error)
	// OptimStep makes one update of the weights with the gradients that were added up, none of which is a gradient of 0,
	// and drops them.
	OptimStep(ctx context.Context, m *Model, adamw AdamW) (*OptimResult, error)
	// SaveWeights stores the training state of m, without its gradients, under a name that m has not used for another one.
	// Without optimizer only the weights are stored. path is what LoadWeights takes, also in another process.
	SaveWeights(ctx context.Context, m *Model, name string, optimizer bool) (path string, err error)
	// LoadWeights replaces the training state of m: its weights, its optimizer, or a new optimizer when that is false, and
	// no gradients. What path may be besides one of SaveWeights is in [Model.LoadWeights].
	LoadWeights(ctx context.Context, m *Model, path string, optimizer bool) error
	// Publish makes the training state of m its next step, k+1 after k, and stores it as [Backend.Train] does. groups are
	// what it was trained on and metrics what was measured, for row k of split "train"; both may be nil. A backend that is
	// no [Logger] ignores them.
	Publish(ctx context.Context, m *Model, groups []*TrajectoryGroup, metrics map[string]float64) (step int, err error)
	// Snapshot prepares s, a model that is not registered otherwise, to sample with weights as they are now: those of
	// path, as LoadWeights takes it, or the training state of m when path is "". Nothing is stored. s does not change any
	// more and cannot be trained; what else [Model.Snapshot] says of it is the backend's to keep.
	Snapshot(ctx context.Context, m *Model, path string, s *Model) error
	// Release forgets a model, and frees what it holds in memory. What is stored stays, and the run can be registered
	// again. Requests in progress end as they would have.
	Release(ctx context.Context, m *Model) error
}

// WeightsKeeper is a [Trainer] that lists what [Model.SaveWeights] has stored.
type WeightsKeeper interface {
	// SavedWeights lists what is stored for m, the oldest first.
	SavedWeights(ctx context.Context, m *Model) ([]SavedWeights, error)
	// DeleteWeights deletes one of them. A name that is not stored is an [ErrInvalid].
	DeleteWeights(ctx context.Context, m *Model, name string) error
}

// Datum is one sequence of tokens to train on: N ids that the model reads, and what it is to predict after each. Lists
// are per position; index i of all of them belongs to the token after Input[i]. For plain text, Targets are Input moved
// by one.
type Datum struct {
	// Input are the ids that the model reads, at least one.
	Input []int32
	// Targets are the ids whose logprobs count: that of Targets[i] after Input[:i+1]. NoTarget is none: the position is
	// not in the loss. Positions without a target, such as those of a prompt, cost less. With K they are [N, K], row by
	// row.
	Targets []int32
	// K is the number of targets of each position, for soft targets such as those of distillation; 0 is 1. More are for
	// [LossCrossEntropy] only.
	K int
	// Weights multiply the loss of each target. nil is 1 for all. They may be negative.
	Weights []float32
	// Logprobs are those of Targets under the policy that sampled them, as in [Sample]. For losses with a ratio to it.
	Logprobs []float32
	// Advantages of Targets, for policy losses.
	Advantages []float32
}

// NoTarget is the target of a position that is not in the loss.
const NoTarget int32 = -1

// ForwardResult is the result of a forward pass.
type ForwardResult struct {
	// Loss is the sum over all targets.
	Loss float64
	// Logprobs are those of the targets of each datum, under the weights of the training state; 0 for NoTarget.
	Logprobs [][]float32
	// Metrics are further ones that the backend measures, by the names in its documentation. May be nil.
	Metrics map[string]float64
	// NotFinite lists the data whose loss or gradient is NaN or infinite. The next OptimStep is then skipped.
	NotFinite []int
}

// AdamW holds the options of one optimizer step. They may differ from step to step. Zeros mean zero: begin with
// [DefaultAdamW].
type AdamW struct {
	LearningRate float64
	Beta1, Beta2 float64 // decay of the moments per step, from 0 to below 1
	Eps          float64 // added to the root of the second moment, above 0
	WeightDecay  float64 // decoupled: a step subtracts LearningRate·WeightDecay of each weight
	GradClipNorm float64 // bound of the global norm of the gradient; 0 is off
}

// DefaultAdamW returns Tinker's defaults: learning rate 1e-4, betas 0.9 and 0.95, eps 1e-12, nothing else.
func DefaultAdamW() AdamW { return AdamW{LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-12} }

// OptimResult is the result of an optimizer step.
type OptimResult struct {
	// GradNorm is the global norm of the gradient, before clipping. Not finite when Skipped.
	GradNorm float64
	// Skipped says that the gradient was not finite: weights and moments are what they were, and the gradients are
	// dropped.
	Skipped bool
	// Updates is how many the training state has seen since its optimizer was new, this one included.
	Updates int
}

// SavedWeights describes what [Model.SaveWeights] has stored.
type SavedWeights struct {
	Name, Path string
	Optimizer  bool  // it can be loaded with its optimizer
	Bytes      int64 // 0 when the backend does not know
}
