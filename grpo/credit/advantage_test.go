package credit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var allAdvantageConfigs = []AdvantageConfig{
	{},
	{Baseline: BaselineMean, Scale: ScaleNone},
	{Baseline: BaselineLeaveOne, Scale: ScaleStd},
	{Baseline: BaselineLeaveOne, Scale: ScaleNone},
}

// randomRewards returns 2 to 17 rewards of the given size around an offset.
func randomRewards(src *rand.Rand, size, offset float64) []float64 {
	rewards := make([]float64, 2+src.IntN(16))
	for i := range rewards {
		rewards[i] = offset + size*src.NormFloat64()
	}
	return rewards
}

// popStd is the population standard deviation, by its other formula.
func popStd(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	n := float64(len(x))
	return math.Sqrt(squares/n - sum/n*sum/n)
}

func mustAdvantages(t *testing.T, rewards []float64, cfg AdvantageConfig) []float64 {
	t.Helper()
	a, reason := Advantages(rewards, cfg)
	wantEqual(t, ReasonNone, reason, "rewards %v", rewards)
	expect(t, len(a) == len(rewards))
	return a
}

// TestAdvantages_Values holds numbers that were computed by hand.
func TestAdvantages_Values(t *testing.T) {
	rewards := []float64{0, 0, 1, 3} // mean 1, population variance (1+1+0+4)/4
	std := math.Sqrt(1.5)
	wantAllNear(t, []float64{-1, -1, 0, 2}, mustAdvantages(t, rewards, AdvantageConfig{Scale: ScaleNone}), 1e-15)
	wantAllNear(t, []float64{-1 / (std + 1e-6), -1 / (std + 1e-6), 0, 2 / (std + 1e-6)},
		mustAdvantages(t, rewards, AdvantageConfig{}), 1e-15)
	// Means of the others: 4/3, 4/3, 1, 1/3.
	wantAllNear(t, []float64{-4.0 / 3, -4.0 / 3, 0, 8.0 / 3},
		mustAdvantages(t, rewards, AdvantageConfig{Baseline: BaselineLeaveOne, Scale: ScaleNone}), 1e-15)
	wantEqual(t, []float64{0, 0, 1, 3}, rewards, "rewards were modified")
}

func TestAdvantages_LeaveOneOutIsMeanOfOthers(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		rewards := randomRewards(src, 1, 0)
		got := mustAdvantages(t, rewards, AdvantageConfig{Baseline: BaselineLeaveOne, Scale: ScaleNone})
		centred := mustAdvantages(t, rewards, AdvantageConfig{Scale: ScaleNone})
		n := float64(len(rewards))
		for i := range rewards {
			others := 0.0
			for j, r := range rewards {
				if j != i {
					others += r / (n - 1)
				}
			}
			wantNear(t, rewards[i]-others, got[i], 1e-12)
			wantNear(t, n/(n-1)*centred[i], got[i], 1e-12)
		}
	}
}

func TestAdvantages_Properties(t *testing.T) {
	src := rand.New(rand.NewPCG(2, 2))
	for _, cfg := range allAdvantageConfigs {
		for range 100 {
			rewards := randomRewards(src, 1, 0)
			a := mustAdvantages(t, rewards, cfg)

			sum := 0.0
			for _, v := range a {
				sum += v
			}
			wantNear(t, 0, sum, 1e-11, "%+v: sum of advantages of %v", cfg, rewards)

			shifted := slices.Clone(rewards)
			scaled := slices.Clone(rewards)
			for i := range rewards {
				shifted[i] += 64
				scaled[i] *= 1024
			}
			wantAllNear(t, a, mustAdvantages(t, shifted, cfg), 1e-10, "%+v: shift", cfg)
			factor := 1024.0
			if cfg.Scale != ScaleNone {
				std := popStd(rewards)
				factor = 1024 * (std + StdEpsilon) / (1024*std + StdEpsilon) // 1 but for StdEpsilon
			}
			for i, v := range mustAdvantages(t, scaled, cfg) {
				wantClose(t, factor*a[i], v, 1e-9, "%+v: scale", cfg)
			}

			order := src.Perm(len(rewards))
			permuted := make([]float64, len(rewards))
			want := make([]float64, len(rewards))
			for i, j := range order {
				permuted[i], want[i] = rewards[j], a[j]
			}
			wantEqual(t, want, mustAdvantages(t, permuted, cfg), "%+v: the order must not change a bit", cfg)
		}
	}
}

func TestAdvantages_StdIsOne(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		a := mustAdvantages(t, randomRewards(src, 100, -7), AdvantageConfig{})
		squares := 0.0
		for _, v := range a {
			squares += v * v
		}
		wantNear(t, 1, squares/float64(len(a)), 1e-4)
	}
}

func TestAdvantages_Reasons(t *testing.T) {
	tiny := math.SmallestNonzeroFloat64
	for name, c := range map[string]struct {
		rewards []float64
		want    Reason
	}{
		"empty":                    {nil, ReasonEmptyGroup},
		"singleton":                {[]float64{1}, ReasonSingleton},
		"equal":                    {[]float64{2, 2, 2}, ReasonNoVariance},
		"zeros":                    {[]float64{0, 0}, ReasonNoVariance},
		"signed zeros":             {[]float64{0, math.Copysign(0, -1)}, ReasonNoVariance},
		"not representable":        {[]float64{0.1, 0.1, 0.1}, ReasonNoVariance},
		"sum of tenths":            {[]float64{0.1 + 0.2, 0.3, 0.3}, ReasonNoVariance},
		"large with a tiny spread": {[]float64{1e9, 1e9 + 1e-4, 1e9}, ReasonNoVariance},
		"large with a spread":      {[]float64{1e9, 1e9 + 1}, ReasonNone},
		"small":                    {[]float64{1e-9, 2e-9}, ReasonNone},
		"smallest":                 {[]float64{0, tiny}, ReasonNone},
		"opposite":                 {[]float64{-1e-13, 1e-13}, ReasonNone},
		"nan":                      {[]float64{0, math.NaN()}, ReasonBadReward},
		"single nan":               {[]float64{math.NaN()}, ReasonBadReward},
		"infinite":                 {[]float64{0, math.Inf(1)}, ReasonBadReward},
		"equal infinite":           {[]float64{math.Inf(-1), math.Inf(-1)}, ReasonBadReward},
		"within of the mean":       {[]float64{1, 1 + 1.5e-12}, ReasonNoVariance},
		"square overflows":         {[]float64{1e200, -1e200}, ReasonNone},
		"largest":                  {[]float64{math.MaxFloat64, math.MaxFloat64 / 2}, ReasonNone},
		"square underflows":        {[]float64{1e-200, 2e-200}, ReasonNone},
		"large and small":          {[]float64{math.MaxFloat64, tiny, 1}, ReasonNone},
	} {
		for _, cfg := range allAdvantageConfigs {
			a, reason := Advantages(c.rewards, cfg)
			wantEqual(t, c.want, reason, "%s %+v", name, cfg)
			wantEqual(t, c.want == ReasonNone, a != nil, name)
			for _, v := range a {
				expect(t, finite(v), "%s: %v", name, a)
			}
			if c.want == ReasonNone {
				expect(t, slices.Max(a)-slices.Min(a) != 0, "%s: advantages %v without a reason", name, a)
			}
		}
	}
}

// TestAdvantages_LargeRewards: the squares of rewards above 1e154 overflowed, and Advantages([1e200, -1e200]) was [0
// -0].
func TestAdvantages_LargeRewards(t *testing.T) {
	for _, large := range []float64{1e100, 1e154, 1e200, math.MaxFloat64} {
		wantAllNear(t, []float64{1, -1}, mustAdvantages(t, []float64{large, -large}, AdvantageConfig{}), 1e-15)
		leaveOne := AdvantageConfig{Baseline: BaselineLeaveOne}
		wantAllNear(t, []float64{2, -2}, mustAdvantages(t, []float64{large, -large}, leaveOne), 1e-15)
		wantEqual(t, []float64{large, -large},
			mustAdvantages(t, []float64{large, -large}, AdvantageConfig{Scale: ScaleNone}))
	}
	none := AdvantageConfig{Baseline: BaselineLeaveOne, Scale: ScaleNone}
	_, reason := Advantages([]float64{math.MaxFloat64, -math.MaxFloat64}, none) // twice the largest number
	wantEqual(t, ReasonBadReward, reason)
}

// TestAdvantages_ScaleIsExact: scaling by a power of two does not change a bit where nothing overflows.
func TestAdvantages_ScaleIsExact(t *testing.T) {
	src := rand.New(rand.NewPCG(6, 6))
	for range 200 {
		rewards := randomRewards(src, 1000, 50)
		centred, std := centre(rewards)
		for i := range centred {
			centred[i] *= 1 / (std + StdEpsilon)
		}
		wantEqual(t, centred, mustAdvantages(t, rewards, AdvantageConfig{}))
	}
}

// TestAdvantages_AtMeanIsZero: 0.1 is the mean of 0, 0.1 and 0.2 but for rounding, and must not be trained on.
func TestAdvantages_AtMeanIsZero(t *testing.T) {
	for _, cfg := range allAdvantageConfigs {
		for _, rewards := range [][]float64{{0, 0.1, 0.2}, {0.7, 0.8, 0.9}, {1e9, 1e9 + 0.1, 1e9 + 0.2}} {
			a := mustAdvantages(t, rewards, cfg)
			expect(t, a[0] < 0.0)
			expect(t, a[2] > 0.0)
			if rewards[0] < 1 { // the tolerance at 1e9 is 1e-3, the rounding of 1e9+0.1 is 6e-8
				expect(t, a[1] == 0, "%v %+v", rewards, cfg)
			}
		}
	}
}

func TestAdvantageConfig_Validate(t *testing.T) {
	wantErr(t, AdvantageConfig{Baseline: "median"}.validate(), `"median"`)
	wantErr(t, AdvantageConfig{Scale: "range"}.validate(), `"range"`)
	wantPanic(t, func() { Advantages([]float64{1, 2}, AdvantageConfig{Scale: "range"}) })
}
