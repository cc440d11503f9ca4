package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

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
		`loss 1: unknown loss "x"`:                  {keyed{key: "a"}, grpo.PolicyLoss{Loss: "x"}},
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
	require.Equal(t, []credit.Loss{"mine"}, b.Losses())
	require.Equal(t, keyed{key: "mine"}, b.lossOf((&art.TrainConfig{Loss: "mine"}).WithDefaults()))
	require.Equal(t, grpo.PolicyLoss{}.Spec(), b.lossOf(new(art.TrainConfig).WithDefaults()).Spec())
}
