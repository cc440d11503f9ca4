package art_test

import (
	"math"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

func TestTrainConfig_WithDefaults(t *testing.T) {
	want := &art.TrainConfig{
		LearningRate: 5e-6, Loss: credit.CISPO, Epsilon: ptr(1.0), EpsilonHigh: ptr(4.0), Level: credit.LevelToken, Baseline: credit.BaselineMean,
		Scale: credit.ScaleStd, Objective: credit.ObjectiveMean, VarianceTolerance: 1e-12, Weighting: credit.WeightTrajectory,
		NormalizeAdvantages: ptr(true), Epochs: 1, MiniBatches: 1, MaxGradNorm: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: ptr(0.1),
	}
	wantEqual(t, "of nil", (*art.TrainConfig)(nil).WithDefaults(), want)
	wantEqual(t, "of the zero value", new(art.TrainConfig).WithDefaults(), want)
	wantEqual(t, "of the defaults", want.WithDefaults(), want)

	given := &art.TrainConfig{
		LearningRate: 1, Loss: credit.PPO, Epsilon: ptr(0.0), EpsilonHigh: ptr(0.3), Level: credit.LevelAverage, DualClip: 3, MaskRatio: true, KimiTau: 0.1,
		PrecalculateLogprobs: true, Correction: credit.Correction{Method: credit.CorrectMask, Low: 0.1, High: 2}, KL: credit.KL{Coef: 1, Estimator: credit.K2, Lag: 3},
		EntropyBonus: 0.1, MaskTruncated: true, Overlong: credit.Overlong{Longest: 9, Buffer: 2, Penalty: 0.5}, Baseline: credit.BaselineLeaveOne,
		Scale: credit.ScaleNone, Objective: credit.ObjectiveRank, VarianceTolerance: 0.1, Weighting: credit.WeightConstant, Length: 9,
		AdvantageBalance: 0.5, NormalizeAdvantages: ptr(false), Epochs: 2, MiniBatches: 3, MicroBatch: 4, MaxGradNorm: -1,
		Beta1: 0.5, Beta2: 0.6, Eps: 1e-3, WeightDecay: ptr(0.0),
	}
	filled := given.WithDefaults()
	wantEqual(t, "of what is given", filled, given)
	if *filled.Epsilon = 9; *given.Epsilon != 0 {
		t.Error("the copy shares a pointer with what was given")
	}
}

func TestTrainConfig_EpsilonDefaults(t *testing.T) {
	cases := []struct {
		loss              credit.Loss
		low, high         *float64
		wantLow, wantHigh float64
	}{
		{"", nil, nil, 1, 4},
		{credit.CISPO, ptr(0.5), nil, 0.5, 4},
		{credit.PPO, nil, nil, 0.2, 0.2},
		{credit.PPO, ptr(0.1), nil, 0.1, 0.1},
		{credit.PPO, nil, ptr(0.28), 0.2, 0.28},
		{credit.DAPO, nil, nil, 0.2, 0.28},
		{credit.DAPO, ptr(0.1), nil, 0.1, 0.28},
		{credit.GSPO, nil, nil, 3e-4, 4e-4},
	}
	for _, c := range cases {
		got := (&art.TrainConfig{Loss: c.loss, Epsilon: c.low, EpsilonHigh: c.high}).WithDefaults()
		if *got.Epsilon != c.wantLow || *got.EpsilonHigh != c.wantHigh {
			t.Errorf("%+v: epsilons %v and %v", c, *got.Epsilon, *got.EpsilonHigh)
		}
	}
}

func TestTrainConfig_Validate(t *testing.T) {
	nan := math.NaN()
	bad := &art.TrainConfig{
		LearningRate: -1, Loss: "x", Epsilon: &nan, EpsilonHigh: ptr(-0.1), Baseline: "y", Scale: "z", Epochs: -1, MiniBatches: -2,
		MicroBatch: -3, MaxGradNorm: nan, Beta1: 1, Beta2: -0.5, Eps: math.Inf(1), WeightDecay: ptr(-4.0),
	}
	wantErr(t, bad.Validate(), art.ErrInvalid, "learning rate is -1", `unknown loss "x"`, "epsilon is NaN",
		"epsilon high is -0.1",
		`unknown baseline "y"`, `unknown scale "z"`, "epochs is -1", "mini-batches is -2", "micro-batch is -3",
		"max grad norm is NaN",
		"beta1 is 1", "beta2 is -0.5", "eps is +Inf", "weight decay is -4")
	for _, good := range []*art.TrainConfig{nil, {}, {MaxGradNorm: -1}, (*art.TrainConfig)(nil).WithDefaults()} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}

// TestTrainConfig_LossDefaults: losses of papers come with what their papers normalise by, which can be overridden.
func TestTrainConfig_LossDefaults(t *testing.T) {
	for _, c := range []struct {
		cfg, want art.TrainConfig
	}{
		{art.TrainConfig{Loss: credit.DrGRPO}, art.TrainConfig{Level: credit.LevelToken, Scale: credit.ScaleNone, Weighting: credit.WeightConstant, NormalizeAdvantages: ptr(false)}},
		{art.TrainConfig{Loss: credit.DrGRPO, Scale: credit.ScaleStd, Weighting: credit.WeightToken, NormalizeAdvantages: ptr(true)}, art.TrainConfig{Level: credit.LevelToken, Scale: credit.ScaleStd, Weighting: credit.WeightToken, NormalizeAdvantages: ptr(true)}},
		{art.TrainConfig{Loss: credit.DAPO}, art.TrainConfig{Level: credit.LevelToken, Scale: credit.ScaleStd, Weighting: credit.WeightToken, NormalizeAdvantages: ptr(true)}},
		{art.TrainConfig{Loss: credit.GSPO}, art.TrainConfig{Level: credit.LevelSequence, Scale: credit.ScaleStd, Weighting: credit.WeightTrajectory, NormalizeAdvantages: ptr(true)}},
	} {
		got := c.cfg.WithDefaults()
		wantEqual(t, string(c.cfg.Loss), art.TrainConfig{Level: got.Level, Scale: got.Scale, Weighting: got.Weighting,
			NormalizeAdvantages: got.NormalizeAdvantages}, c.want)
	}
	if got := (&art.TrainConfig{Loss: credit.Reinforce}).WithDefaults(); got.Epsilon != nil || got.EpsilonHigh != nil {
		t.Errorf("reinforce has bounds: %+v", got)
	}
	if got := (&art.TrainConfig{Loss: credit.DRO}).WithDefaults(); got.DROBeta != 0.05 {
		t.Errorf("DRO's beta is %v", got.DROBeta)
	}
}

// TestTrainConfig_CorrectionDefaults: a correction is of the policy before its update where the loss has a ratio, or
// may have one, and costs no forward pass elsewhere.
func TestTrainConfig_CorrectionDefaults(t *testing.T) {
	for loss, want := range map[credit.Loss]bool{
		"": true, credit.GSPO: true, credit.ImportanceSampling: true, "mine": true, credit.Reinforce: false,
		credit.CrossEntropy: false, credit.DRO: false,
	} {
		cfg := &art.TrainConfig{Loss: loss, Correction: credit.Correction{Method: credit.CorrectMask}}
		if got := cfg.WithDefaults().PrecalculateLogprobs; got != want {
			t.Errorf("loss %q: precalculated logprobs %v, want %v", loss, got, want)
		}
		cfg.Correction = credit.Correction{}
		if cfg.WithDefaults().PrecalculateLogprobs {
			t.Errorf("loss %q: precalculated logprobs without a correction", loss)
		}
	}
}

// TestTrainConfig_OwnLoss: a loss of a backend is accepted where it is offered, without the options of others.
func TestTrainConfig_OwnLoss(t *testing.T) {
	cfg := &art.TrainConfig{Loss: "mine"}
	wantErr(t, cfg.Validate(), art.ErrInvalid, `unknown loss "mine"`)
	if err := cfg.WithDefaults().Validate("other", "mine"); err != nil {
		t.Error(err)
	}
	if err := (&art.TrainConfig{Loss: "mine", KL: credit.KL{Lag: 2}}).Validate("mine"); err != nil {
		t.Errorf("it may use a reference without a penalty: %v", err)
	}
	cfg.KL = credit.KL{Advantage: true, Lag: 2}
	wantErr(t, cfg.Validate("mine"), art.ErrInvalid, "and no coefficient")
	cfg.Epsilon, cfg.KimiTau = ptr(0.1), 1
	wantErr(t, cfg.Validate("mine"), art.ErrInvalid, `"mine" takes no epsilon`, `"mine" takes no kimi tau`)
}

// TestTrainConfig_Combinations: what cannot be combined is an error, and all of it is listed.
func TestTrainConfig_Combinations(t *testing.T) {
	for _, c := range []struct {
		cfg  art.TrainConfig
		want []string
	}{
		{art.TrainConfig{K: 2, Length: 5}, []string{"K is 2", "length is 5"}},
		{art.TrainConfig{Loss: credit.DrGRPO, Weighting: credit.WeightToken, Length: 5}, []string{"length is 5"}},
		{art.TrainConfig{Objective: credit.ObjectivePassK, Baseline: credit.BaselineLeaveOne}, []string{"K is 0", "baseline of its own"}},
		{art.TrainConfig{Objective: credit.ObjectiveMaxK, K: 1}, []string{"at least 2"}},
		{art.TrainConfig{Objective: credit.ObjectiveMaxK, K: 2, Loss: credit.PPO, DualClip: 3, AdvantageBalance: 0.5}, []string{"no advantage balance", "no dual clip"}},
		{art.TrainConfig{Objective: "x", Weighting: "y", AdvantageBalance: 2, VarianceTolerance: -1}, []string{`unknown objective "x"`, `unknown weighting "y"`, "advantage balance is 2", "variance tolerance is -1"}},
		{art.TrainConfig{AdvantageBalance: math.NaN()}, []string{"advantage balance is NaN"}},
		{art.TrainConfig{Loss: credit.Reinforce, Epsilon: ptr(1.0), MaskRatio: true, Level: credit.LevelAverage, DualClip: 3, DROBeta: 1}, []string{"no epsilon", "no mask ratio", "no level", "no dual clip", "no DRO beta"}},
		{art.TrainConfig{Loss: credit.DAPO, DualClip: 1.28, Level: "word", KimiTau: -1}, []string{"more than 1 + epsilon high", `unknown level "word"`, "kimi tau is -1"}},
		{art.TrainConfig{Loss: credit.CrossEntropy, KimiTau: 1, PrecalculateLogprobs: true}, []string{"no kimi tau", "precalculate logprobs does nothing"}},
		{art.TrainConfig{Correction: credit.Correction{High: 3}, KL: credit.KL{Lag: 1}, Overlong: credit.Overlong{Penalty: 1}}, []string{"and no method", "and no coefficient", "and no longest"}},
		{art.TrainConfig{Correction: credit.Correction{Method: "x"}, KL: credit.KL{Coef: -1, Estimator: "k4"}, EntropyBonus: -2}, []string{`unknown correction "x"`, "KL coefficient is -1", `unknown KL estimator "k4"`, "entropy bonus is -2"}},
		{art.TrainConfig{Objective: credit.ObjectivePassK, K: 2, Overlong: credit.Overlong{Longest: 5}}, []string{"leave Overlong out"}},
		{art.TrainConfig{Loss: credit.CrossEntropy, AdvantageBalance: 0.5, Scale: credit.ScaleBatch, Baseline: credit.BaselineLeaveOne, NormalizeAdvantages: ptr(false), KL: credit.KL{Coef: 1, Advantage: true}}, []string{"no advantage balance", "no scale", "no baseline", "no normalize advantages", "no KL in advantages"}},
		{art.TrainConfig{KL: credit.KL{Step: ptr(1)}}, []string{"and no coefficient"}},
		{art.TrainConfig{Correction: credit.Correction{Method: credit.CorrectTruncate, Low: 2}, KL: credit.KL{Coef: 1, Step: ptr(-1), Lag: 2}, Overlong: credit.Overlong{Longest: 5, Buffer: 6}}, []string{"between 2 and 2", "KL step is -1", "want one of them", "buffer is 6"}},
	} {
		wantErr(t, c.cfg.Validate(), art.ErrInvalid, c.want...)
	}
	for _, good := range []*art.TrainConfig{
		{Objective: credit.ObjectivePassK, K: 4, Scale: credit.ScaleNone}, {Objective: credit.ObjectiveMaxK, K: 2},
		{Objective: credit.ObjectiveRank, Baseline: credit.BaselineLeaveOne, Scale: credit.ScaleBatch},
		{Weighting: credit.WeightConstant, Length: 512, AdvantageBalance: -1}, {Loss: credit.DrGRPO, Length: 512},
		{Loss: credit.Reinforce, PrecalculateLogprobs: true, Correction: credit.Correction{Method: credit.CorrectTruncate}},
		{Correction: credit.Correction{Method: credit.CorrectMask, Sequence: true, Behavior: true}, PrecalculateLogprobs: true},
		{Objective: credit.ObjectiveMaxK, K: 2, Scale: credit.ScaleBatch, Overlong: credit.Overlong{Longest: 5}},
		{Objective: credit.ObjectiveMaxK, K: 2, Loss: credit.PPO, DualClip: 3, KL: credit.KL{Coef: 0.1, Advantage: true}},
		{Loss: credit.CrossEntropy, Correction: credit.Correction{Method: credit.CorrectTruncate}, KL: credit.KL{Coef: 0.1}},
		(&art.TrainConfig{Loss: credit.CrossEntropy}).WithDefaults(),
		{KL: credit.KL{Coef: 0.01, Step: ptr(0)}, EntropyBonus: 0.01, MaskTruncated: true, Overlong: credit.Overlong{Longest: 100, Buffer: 20}},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}

func TestSFTConfig_WithDefaults(t *testing.T) {
	want := &art.SFTConfig{LearningRate: 5e-5, BatchSize: 8, Epochs: 1, Decay: ptr(1.0), MaxGradNorm: 1,
		Schedule: art.ScheduleConstant, Turns: art.TurnsAll}
	wantEqual(t, "of nil", (*art.SFTConfig)(nil).WithDefaults(), want)
	given := &art.SFTConfig{
		LearningRate: 1, BatchSize: 2, Epochs: 3, Warmup: 0.1, Decay: ptr(0.0), MaxGradNorm: -1, WeightDecay: 0.5, Seed: 6,
		Schedule: art.ScheduleCosine, Turns: art.TurnsLast,
	}
	filled := given.WithDefaults()
	wantEqual(t, "of what is given", filled, given)
	if *filled.Decay = 9; *given.Decay != 0 {
		t.Error("the copy shares a pointer with what was given")
	}
}

func TestSFTConfig_Validate(t *testing.T) {
	nan := math.NaN()
	bad := &art.SFTConfig{
		LearningRate: nan, BatchSize: -1, Epochs: -2, Warmup: 1.5, Decay: &nan, MaxGradNorm: math.Inf(-1), WeightDecay: -3,
		Turns: "first", Validation: []*art.Trajectory{nil}, Part: art.SchedulePart{From: 0.5, To: 0.5},
	}
	wantErr(t, bad.Validate(), art.ErrInvalid, `unknown turns "first"`, "a trajectory of Validation is nil",
		"learning rate is NaN", "batch size is -1", "epochs is -2", "warmup is 1.5",
		"decay is NaN", "part is from 0.5 to 0.5",
		"max grad norm is -Inf", "weight decay is -3")
	for _, good := range []*art.SFTConfig{nil, {}, {Warmup: 1, Decay: ptr(0.0)}, {Part: art.SchedulePart{To: 1}}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
}
