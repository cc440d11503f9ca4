package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// TestLosses: the root and package grpo have the same losses, with the same defaults.
func TestLosses(t *testing.T) {
	var names []art.Loss
	for _, kind := range grpo.PolicyKinds() {
		names = append(names, art.Loss(kind))
		plain := grpo.PolicyLoss{Kind: kind}
		configured := policyLoss((&art.TrainConfig{Loss: art.Loss(kind)}).WithDefaults())
		require.NoError(t, configured.Validate(), kind)
		require.Equal(t, plain.Spec(), configured.Spec(), kind)
	}
	require.Equal(t, art.BuiltinLosses(), names)
}

// TestLosses_OptionsAgree: what package art accepts package grpo accepts, and the other way round.
func TestLosses_OptionsAgree(t *testing.T) {
	for _, loss := range art.BuiltinLosses() {
		for name, set := range map[string]func(c *art.TrainConfig){
			"epsilon":      func(c *art.TrainConfig) { c.Epsilon = ptr(0.1) },
			"epsilon high": func(c *art.TrainConfig) { c.EpsilonHigh = ptr(0.1) },
			"dual clip":    func(c *art.TrainConfig) { c.DualClip = 3 },
			"low clip":     func(c *art.TrainConfig) { c.DualClip = 1 },
			"mask ratio":   func(c *art.TrainConfig) { c.MaskRatio = true },
			"tau":          func(c *art.TrainConfig) { c.KimiTau = 0.1 },
			"beta":         func(c *art.TrainConfig) { c.DROBeta = 0.1 },
			"sequence":     func(c *art.TrainConfig) { c.Level = art.LevelSequence },
		} {
			c := &art.TrainConfig{Loss: loss}
			set(c)
			require.Equal(t, c.Validate() == nil, policyLoss(c).Validate() == nil, "%s with %s: %v and %v", loss, name,
				c.Validate(), policyLoss(c).Validate())
		}
	}
}

func ptr(x float64) *float64 { return &x }

// keyed is a loss with a key of its own.
type keyed struct {
	grpo.PolicyLoss
	key string
}

func (l keyed) Spec() grpo.LossSpec {
	spec := l.PolicyLoss.Spec()
	spec.Key = l.key
	return spec
}

func TestOpen_Losses(t *testing.T) {
	for want, losses := range map[string][]grpo.Loss{
		"loss 0 is nil":                             {nil},
		`loss 1: grpo: unknown loss "x"`:            {keyed{key: "a"}, grpo.PolicyLoss{Kind: "x"}},
		`loss 0 has the key "ppo" of another loss`:  {keyed{key: "ppo"}},
		`loss 1 has the key "mine" of another loss`: {keyed{key: "mine"}, keyed{key: "mine"}},
		"loss 0 has no key":                         {keyed{}},
		`loss 0 has the key "supervised" of`:        {keyed{key: "supervised"}},
		`loss 0 has the key "preference" of`:        {keyed{key: "preference"}},
		`loss "preference" is a grpo.BatchLoss`:     {grpo.PreferenceLoss{Preference: credit.Preference{Beta: 1}}},
	} {
		_, err := Open(t.Context(), &Options{Dir: t.TempDir(), Losses: losses})
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Losses: []grpo.Loss{keyed{key: "mine"}}})
	require.NoError(t, err)
	defer b.Close()
	require.Equal(t, []art.Loss{"mine"}, b.Losses())
	require.Equal(t, keyed{key: "mine"}, b.lossOf((&art.TrainConfig{Loss: "mine"}).WithDefaults()))
	require.Equal(t, grpo.PolicyLoss{}.Spec(), b.lossOf(new(art.TrainConfig).WithDefaults()).Spec())
}
