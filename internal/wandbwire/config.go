package wandbwire

import (
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// RLTrain is the experimental_config of a training. Fields that are absent or null have their defaults.
type RLTrain struct {
	LearningRate         *float64 `json:"learning_rate,omitempty"`
	LossFn               *string  `json:"loss_fn,omitempty"` // cispo or ppo
	PPO                  *bool    `json:"ppo,omitempty"`     // the same, of older clients
	Epsilon              *float64 `json:"epsilon,omitempty"`
	EpsilonHigh          *float64 `json:"epsilon_high,omitempty"`
	ImportanceLevel      *string  `json:"importance_sampling_level,omitempty"`
	MaskProbRatio        *bool    `json:"mask_prob_ratio,omitempty"`
	KimiTau              *float64 `json:"kimi_k2_tau,omitempty"`
	AdvantageBalance     *float64 `json:"advantage_balance,omitempty"`
	ScaleRewards         *bool    `json:"scale_rewards,omitempty"`
	NormalizeAdvantages  *bool    `json:"normalize_advantages,omitempty"` // the same, of newer clients
	PrecalculateLogprobs *bool    `json:"precalculate_logprobs,omitempty"`
	Truncated            *float64 `json:"truncated_importance_sampling,omitempty"`
	KLCoef               *float64 `json:"kl_penalty_coef,omitempty"`
	KLStep               *int     `json:"kl_penalty_reference_step,omitempty"`
	KLLag                *int     `json:"kl_penalty_step_lag,omitempty"`
	KLSource             *string  `json:"kl_penalty_source,omitempty"`
	ScaleByStd           *bool    `json:"scale_learning_rate_by_reward_std_dev,omitempty"`

	// Not supported, but as their defaults.
	WithoutLogprobs  *bool    `json:"allow_training_without_logprobs,omitempty"`
	KLAdapter        *string  `json:"kl_ref_adapter_path,omitempty"`
	MaxNegative      *float64 `json:"max_negative_advantage_importance_sampling_weight,omitempty"`
	MultiplierPower  *float64 `json:"num_trajectories_learning_rate_multiplier_power,omitempty"`
	PlotTensors      *bool    `json:"plot_tensors,omitempty"`
	LogprobChunkSize *int     `json:"logprob_calculation_chunk_size,omitempty"` // of memory, not of numbers: ignored
	PackedLength     *int     `json:"packed_sequence_length,omitempty"`         // the same
}

// value returns *p, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// levels are the names of the levels of the importance ratio.
var levels = map[string]credit.Level{
	"": "", "token": credit.LevelToken, "sequence": credit.LevelSequence, "average": credit.LevelAverage,
	"geometric_average": credit.LevelGeometric,
}

// TrainConfig returns the same configuration of a training. What it cannot express is an error that lists all of it.
func (c *RLTrain) TrainConfig() (*art.TrainConfig, error) {
	if c == nil {
		return &art.TrainConfig{}, nil
	}
	out := &art.TrainConfig{
		LearningRate: value(c.LearningRate), Loss: credit.Loss(value(c.LossFn)),
		Epsilon: c.Epsilon, EpsilonHigh: c.EpsilonHigh, MaskRatio: value(c.MaskProbRatio),
		KimiTau: value(c.KimiTau), AdvantageBalance: value(c.AdvantageBalance),
		PrecalculateLogprobs: value(c.PrecalculateLogprobs),
	}
	if out.Loss == "" && value(c.PPO) {
		out.Loss = credit.PPO
	}
	if c.ScaleRewards != nil && !*c.ScaleRewards || c.NormalizeAdvantages != nil && !*c.NormalizeAdvantages {
		out.Scale = credit.ScaleNone
	}
	if bound := value(c.Truncated); bound != 0 {
		out.Correction = credit.Correction{Method: credit.CorrectTruncate, High: bound}
	}
	if coef := value(c.KLCoef); coef != 0 {
		out.KL = credit.KL{Advantage: true, Coef: coef, Step: c.KLStep, Lag: value(c.KLLag)}
	}
	level, known := levels[value(c.ImportanceLevel)]
	out.Level = level
	var p []error
	refuse := func(refused bool, format string, args ...any) {
		if refused {
			p = append(p, fmt.Errorf(format, args...))
		}
	}
	loss := value(c.LossFn)
	refuse(loss != "" && loss != "cispo" && loss != "ppo", "loss_fn is %q; want cispo or ppo", loss)
	refuse(loss == "cispo" && value(c.PPO), "loss_fn is cispo, and ppo is true; leave ppo out")
	refuse(!known, "importance_sampling_level is %q; want token, sequence, average or geometric_average",
		value(c.ImportanceLevel))
	refuse(value(c.KLCoef) != 0 && value(c.KLSource) == "current_learner" && !value(c.PrecalculateLogprobs),
		"kl_penalty_source current_learner needs precalculate_logprobs; or set it to sample")
	refuse(value(c.KLCoef) == 0 && (c.KLStep != nil || c.KLLag != nil),
		"kl_penalty_reference_step and kl_penalty_step_lag need kl_penalty_coef")
	refuse(value(c.WithoutLogprobs), "allow_training_without_logprobs is not supported; send choices with their logprobs")
	refuse(value(c.KLAdapter) != "", "kl_ref_adapter_path is not supported; use kl_penalty_reference_step")
	refuse(c.MaxNegative != nil, "max_negative_advantage_importance_sampling_weight is not supported; leave it out")
	refuse(value(c.MultiplierPower) != 0, "num_trajectories_learning_rate_multiplier_power is not supported; use 0")
	refuse(value(c.PlotTensors), "plot_tensors is not supported; leave it out")
	return out, errors.Join(p...)
}

// NewRLTrain is the inverse of [RLTrain.TrainConfig]. cfg has its defaults filled in; what the service has no option
// for is an error that lists all of it.
func NewRLTrain(cfg *art.TrainConfig) (*RLTrain, error) {
	loss, level := string(cfg.Loss), string(cfg.Level)
	if cfg.Level == credit.LevelGeometric {
		level = "geometric_average"
	}
	scale, ppo := cfg.Scale == credit.ScaleStd, cfg.Loss == credit.PPO
	out := &RLTrain{
		LearningRate: &cfg.LearningRate, LossFn: &loss, PPO: &ppo, Epsilon: cfg.Epsilon, EpsilonHigh: cfg.EpsilonHigh,
		ImportanceLevel: &level, MaskProbRatio: &cfg.MaskRatio, AdvantageBalance: &cfg.AdvantageBalance,
		ScaleRewards: &scale, NormalizeAdvantages: &scale, PrecalculateLogprobs: &cfg.PrecalculateLogprobs,
	}
	if cfg.KimiTau != 0 {
		out.KimiTau = &cfg.KimiTau
	}
	if cfg.Correction.Method != "" {
		out.Truncated = &cfg.Correction.High
	}
	if cfg.KL.Coef != 0 {
		source := "sample"
		if cfg.PrecalculateLogprobs {
			source = "current_learner"
		}
		out.KLCoef, out.KLStep, out.KLSource = &cfg.KL.Coef, cfg.KL.Step, &source
		if cfg.KL.Lag != 0 {
			out.KLLag = &cfg.KL.Lag
		}
	}
	return out, unsupported(cfg)
}

// unsupported lists the options that the service does not have.
func unsupported(cfg *art.TrainConfig) error {
	d := (&art.TrainConfig{Loss: cfg.Loss}).WithDefaults()
	var p []error
	for _, option := range []struct {
		name string
		ok   bool
	}{
		{"Loss " + string(cfg.Loss), cfg.Loss == credit.CISPO || cfg.Loss == credit.PPO},
		{"DualClip", cfg.DualClip == 0},
		{"Correction", cfg.Correction == credit.Correction{} ||
			cfg.Correction == credit.Correction{Method: credit.CorrectTruncate, High: cfg.Correction.High}},
		{"KL without Advantage", cfg.KL.Coef == 0 || cfg.KL.Advantage && cfg.KL.Estimator == credit.K1},
		{"EntropyBonus", cfg.EntropyBonus == 0}, {"MaskTruncated", !cfg.MaskTruncated},
		{"Overlong", cfg.Overlong == credit.Overlong{}}, {"Baseline", cfg.Baseline == d.Baseline},
		{"Scale " + string(cfg.Scale), cfg.Scale == credit.ScaleStd || cfg.Scale == credit.ScaleNone},
		{"Objective", cfg.Objective == d.Objective}, {"Weighting", cfg.Weighting == d.Weighting},
		{"VarianceTolerance", cfg.VarianceTolerance == d.VarianceTolerance},
		{"NormalizeAdvantages", *cfg.NormalizeAdvantages}, {"Epochs", cfg.Epochs == 1},
		{"MiniBatches", cfg.MiniBatches == 1}, {"MicroBatch", cfg.MicroBatch == 0},
		{"MaxGradNorm", cfg.MaxGradNorm == d.MaxGradNorm}, {"Beta1", cfg.Beta1 == d.Beta1}, {"Beta2", cfg.Beta2 == d.Beta2},
		{"Eps", cfg.Eps == d.Eps}, {"WeightDecay", *cfg.WeightDecay == *d.WeightDecay},
	} {
		if !option.ok {
			p = append(p, fmt.Errorf("the service has no option for %s", option.name))
		}
	}
	return errors.Join(p...)
}
