package loop

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
	// Skipped says that the gradient or its loss was not finite: weights and moments are what they were, and the gradients
	// are dropped.
	Skipped bool
	// Updates is how many the training state has seen since its optimizer was new, this one included.
	Updates int
}
