package credit

import (
	"math"
	"testing"
)

func TestPolicy_Config(t *testing.T) {
	for _, c := range []struct {
		cfg    Policy
		lo, hi float64
	}{
		{Policy{}, 0, 5},
		{Policy{Loss: PPO}, 0.8, 1.2},
		{Policy{Loss: PPO, Epsilon: ptr(0.1)}, 0.9, 1.1},
		{Policy{Loss: PPO, EpsilonHigh: ptr(0.28)}, 0.8, 1.28},
		{Policy{Loss: CISPO, Epsilon: ptr(0)}, 1, 5},
		{Policy{Loss: DrGRPO}, 0.8, 1.2},
		{Policy{Loss: DAPO}, 0.8, 1.28},
		{Policy{Loss: GSPO}, 0.9997, 1.0004},
		{Policy{Loss: Reinforce}, 0, math.Inf(1)},
	} {
		wantOK(t, c.cfg.Validate())
		lo, hi := c.cfg.Bounds()
		wantNear(t, c.lo, lo, 1e-15)
		wantNear(t, c.hi, hi, 1e-15)
	}
	for _, c := range []struct {
		cfg  Policy
		want []string
	}{
		{Policy{Loss: "x", Epsilon: ptr(-1), EpsilonHigh: ptr(math.NaN())}, []string{`"x"`, "epsilon is -1", "epsilon high is NaN"}},
		{Policy{Loss: Reinforce, Epsilon: ptr(1), MaskRatio: true, Level: LevelSequence, DualClip: 3, DROBeta: 1}, []string{"no epsilon", "no mask ratio", "no level", "no dual clip", "no DRO beta"}},
		{Policy{Loss: CrossEntropy, KimiTau: 1}, []string{"no kimi tau"}},
		{Policy{Loss: DAPO, DualClip: 1.28, Level: "word"}, []string{"more than 1 + epsilon high", `unknown level "word"`}},
		{Policy{DualClip: -1, KimiTau: math.Inf(1), DROBeta: -2}, []string{"dual clip is -1", "kimi tau is +Inf", "DRO beta is -2"}},
	} {
		for _, want := range c.want {
			wantErr(t, c.cfg.Validate(), want)
		}
	}
}

func ptr(x float64) *float64 { return &x }
