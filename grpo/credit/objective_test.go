package credit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// subsets calls f with every choice of k of the indices.
func subsets(indices []int, k int, f func(chosen []int)) {
	if k == 0 {
		f(nil)
		return
	}
	for i := range len(indices) - k + 1 {
		subsets(indices[i+1:], k-1, func(rest []int) { f(append([]int{indices[i]}, rest...)) })
	}
}

// others returns the indices below n but for i.
func others(n, i int) (list []int) {
	for j := range n {
		if j != i {
			list = append(list, j)
		}
	}
	return list
}

// TestAdvantages_MaxKByEnumeration goes through all choices of K-1 others.
func TestAdvantages_MaxKByEnumeration(t *testing.T) {
	src := rand.New(rand.NewPCG(21, 1))
	for range 60 {
		n := 2 + src.IntN(7)
		rewards := make([]float64, n)
		for i := range rewards {
			rewards[i] = float64(src.IntN(6)) - 2 // with ties
		}
		sorted := slices.Sorted(slices.Values(rewards))
		if sorted[0] == sorted[n-1] || sorted[n-2] == sorted[n-1] { // with two best ones none may add anything
			continue
		}
		k := 2 + src.IntN(n-1)
		got := mustAdvantages(t, rewards, AdvantageConfig{Objective: ObjectiveMaxK, K: k, Scale: ScaleNone})
		scaled := mustAdvantages(t, rewards, AdvantageConfig{Objective: ObjectiveMaxK, K: k})
		for i, r := range rewards {
			sum, count := 0.0, 0.0
			subsets(others(n, i), k-1, func(chosen []int) {
				sum, count = sum+max(0, r-best(rewards, chosen)), count+1
			})
			wantNear(t, sum/count, got[i], 1e-12, "rewards %v, K %d", rewards, k)
			wantNear(t, got[i]/(popStd(rewards)+StdEpsilon), scaled[i], 1e-12)
		}
	}
}

// maxKOf are the unscaled advantages of max@k, zeros where none adds anything.
func maxKOf(t *testing.T, rewards []float64, k int) []float64 {
	t.Helper()
	advantages, reason := Advantages(rewards, AdvantageConfig{Objective: ObjectiveMaxK, K: k, Scale: ScaleNone})
	if reason == ReasonNoVariance {
		return make([]float64, len(rewards))
	}
	wantEqual(t, ReasonNone, reason)
	return advantages
}

// best is the largest of the rewards chosen.
func best(rewards []float64, chosen []int) float64 {
	largest := math.Inf(-1)
	for _, j := range chosen {
		largest = max(largest, rewards[j])
	}
	return largest
}

// TestAdvantages_MaxKIsPKPO: K/n times the advantage is what PKPO calls s with the baseline loo-1, from its definition:
// the sum over all choices of K attempts with this one of the best of them minus the best without it, over C(n, K).
func TestAdvantages_MaxKIsPKPO(t *testing.T) {
	src := rand.New(rand.NewPCG(23, 1))
	for n := 2; n <= 7; n++ {
		for k := 2; k <= n; k++ {
			rewards := make([]float64, n)
			for i := range rewards {
				rewards[i] = float64(src.IntN(5)) + src.Float64()*float64(src.IntN(2)) // some ties
			}
			rewards[0] = 7 // the only best one
			sums, count := make([]float64, n), 0.0
			subsets(append([]int{0}, others(n, 0)...), k, func(chosen []int) {
				count++
				for _, i := range chosen {
					without := slices.DeleteFunc(slices.Clone(chosen), func(j int) bool { return j == i })
					sums[i] += best(rewards, chosen) - best(rewards, without)
				}
			})
			got := maxKOf(t, rewards, k)
			expect(t, got[0] > 0)
			for i := range got {
				wantNear(t, sums[i]/count, got[i]*float64(k)/float64(n), 1e-12, "rewards %v, K %d", rewards, k)
			}
		}
	}
}

// TestAdvantages_MaxKIsUnbiased: over all groups that a policy of three outcomes may sample, the mean of K/n·Σ A·∇log p
// is the gradient of the expected best reward of K attempts.
func TestAdvantages_MaxKIsUnbiased(t *testing.T) {
	p, reward := []float64{0.2, 0.5, 0.3}, []float64{1, -0.5, 2.5}
	// expected is the mean of f over all groups of n outcomes.
	expected := func(n int, f func(outcomes []int) []float64) []float64 {
		sum := make([]float64, len(p))
		for code := range int(math.Pow(float64(len(p)), float64(n))) {
			outcomes, chance := make([]int, n), 1.0
			for i := range outcomes {
				outcomes[i] = code % len(p)
				code /= len(p)
				chance *= p[outcomes[i]]
			}
			for j, v := range f(outcomes) {
				sum[j] += chance * v
			}
		}
		return sum
	}
	// policyGradient is Σ weight·∇log p, with respect to the logits of the outcomes.
	policyGradient := func(outcomes []int, weights []float64) []float64 {
		grad := make([]float64, len(p))
		for i, x := range outcomes {
			grad[x] += weights[i]
			for j := range p {
				grad[j] -= weights[i] * p[j]
			}
		}
		return grad
	}
	for _, c := range []struct{ n, k int }{{2, 2}, {4, 2}, {4, 3}, {5, 3}, {5, 5}} {
		want := expected(c.k, func(outcomes []int) []float64 { // of the expectation itself
			return policyGradient(outcomes, slices.Repeat([]float64{best(reward, outcomes)}, c.k))
		})
		got := expected(c.n, func(outcomes []int) []float64 {
			rewards, weights := make([]float64, c.n), make([]float64, c.n)
			for i, x := range outcomes {
				rewards[i] = reward[x]
			}
			for i, a := range maxKOf(t, rewards, c.k) {
				weights[i] = a * float64(c.k) / float64(c.n)
			}
			return policyGradient(outcomes, weights)
		})
		expect(t, want[2] > 0.1)
		wantAllNear(t, want, got, 1e-12, "%+v", c)
	}
}

// TestAdvantages_PassKByEnumeration: the advantage is the chance that K attempts with this one succeed, minus the
// chance that any K do, over the standard deviation of the latter.
func TestAdvantages_PassKByEnumeration(t *testing.T) {
	for n := 2; n <= 7; n++ {
		for right := 1; right < n; right++ {
			for k := 1; k <= n-right; k++ {
				rewards := make([]float64, n)
				for i := range right {
					rewards[i] = 1
				}
				cfg := AdvantageConfig{Objective: ObjectivePassK, K: k, Scale: ScaleNone}
				got := mustAdvantages(t, rewards, cfg)
				cfg.Scale = ScaleStd
				scaled := mustAdvantages(t, rewards, cfg)
				all := append([]int{0}, others(n, 0)...)
				p := passRate(rewards, nil, all, k)
				for i := range rewards {
					want := passRate(rewards, []int{i}, others(n, i), k-1) - p
					wantNear(t, want, got[i], 1e-12, "%d of %d right, K %d", right, n, k)
					wantNear(t, want/(math.Sqrt(p*(1-p))+StdEpsilon), scaled[i], 1e-12)
				}
			}
		}
	}
}

// passRate is the fraction of choices of k, beside those given, in which one is right.
func passRate(rewards []float64, given, from []int, k int) float64 {
	passed, count := 0.0, 0.0
	subsets(from, k, func(chosen []int) {
		count++
		if slices.ContainsFunc(append(chosen, given...), func(j int) bool { return rewards[j] == 1 }) {
			passed++
		}
	})
	return passed / count
}

// TestAdvantages_RankIgnoresSize: rewards of equal order have equal advantages; ties share a rank.
func TestAdvantages_RankIgnoresSize(t *testing.T) {
	cfg := AdvantageConfig{Objective: ObjectiveRank, Scale: ScaleNone}
	wantAllNear(t, []float64{-0.5, 0.5, 0, 0}, mustAdvantages(t, []float64{-3, 1e9, 0.1 + 0.2, 0.3}, cfg), 1e-15)
	// Ranks 0.25, 1, 0.25: their mean is 0.5.
	wantAllNear(t, []float64{-0.25, 0.5, -0.25}, mustAdvantages(t, []float64{0, 5, 0}, cfg), 1e-15)
	src := rand.New(rand.NewPCG(22, 1))
	for range 50 {
		rewards := randomRewards(src, 1, 0)
		larger := make([]float64, len(rewards))
		for i, r := range rewards {
			larger[i] = math.Exp(3*r) - 7
		}
		wantEqual(t, mustAdvantages(t, rewards, cfg), mustAdvantages(t, larger, cfg))
	}
}

func TestAdvantages_ObjectiveReasons(t *testing.T) {
	for _, c := range []struct {
		cfg     AdvantageConfig
		rewards []float64
		want    Reason
	}{
		{AdvantageConfig{Objective: ObjectivePassK, K: 2}, []float64{0, 0.5, 1}, ReasonNotBinary},
		{AdvantageConfig{Objective: ObjectivePassK, K: 2}, []float64{0, 1, 1}, ReasonNoVariance},
		{AdvantageConfig{Objective: ObjectivePassK, K: 4}, []float64{0, 1, 0}, ReasonSmallGroup},
		{AdvantageConfig{Objective: ObjectiveMaxK, K: 4}, []float64{0, 1, 2}, ReasonSmallGroup},
		{AdvantageConfig{Objective: ObjectiveMaxK, K: 2, Scale: ScaleNone}, []float64{math.MaxFloat64, -math.MaxFloat64}, ReasonBadReward},
		{AdvantageConfig{Objective: ObjectiveMaxK, K: 3}, []float64{0, 1, 1}, ReasonNoVariance},
		{AdvantageConfig{Tolerance: 0.1}, []float64{1, 0.95}, ReasonNoVariance},
		{AdvantageConfig{Tolerance: 0.1}, []float64{1, 0.85}, ReasonNone},
		{AdvantageConfig{Objective: ObjectiveRank}, []float64{1, 1 + 1e-14}, ReasonNoVariance},
	} {
		_, got := Advantages(c.rewards, c.cfg)
		wantEqual(t, c.want, got, "%+v of %v", c.cfg, c.rewards)
	}
}

func TestAdvantageConfig_Objectives(t *testing.T) {
	for _, c := range []struct {
		cfg  AdvantageConfig
		want []string
	}{
		{AdvantageConfig{K: 2}, []string{"K is 2"}},
		{AdvantageConfig{Objective: ObjectivePassK, Baseline: BaselineLeaveOne}, []string{"K is 0", "baseline of its own"}},
		{AdvantageConfig{Objective: ObjectiveMaxK, K: 1}, []string{"at least 2"}},
		{AdvantageConfig{Objective: "median", Tolerance: -1}, []string{`"median"`, "tolerance is -1"}},
	} {
		for _, want := range c.want {
			wantErr(t, c.cfg.validate(), want)
		}
	}
}

func TestBatchStd(t *testing.T) {
	expect(t, BatchStd(nil) == 0)
	wantNear(t, math.Sqrt(1.5), BatchStd([]float64{0, 3, 0, 1}), 1e-15)
	wantClose(t, 1e200, BatchStd([]float64{1e200, -1e200}), 1e-15)
}

// TestTransformed: what objectives make of rewards, by hand, and where they make nothing of them.
func TestTransformed(t *testing.T) {
	for name, c := range map[string]struct {
		cfg           AdvantageConfig
		rewards, want []float64
	}{
		"mean":           {AdvantageConfig{}, []float64{3, 3, 1}, []float64{3, 3, 1}},
		"rank":           {AdvantageConfig{Objective: ObjectiveRank}, []float64{9, -70, 9}, []float64{0.75, 0, 0.75}},
		"equal ranks":    {AdvantageConfig{Objective: ObjectiveRank}, []float64{9, 9}, []float64{0.5, 0.5}},
		"one rank":       {AdvantageConfig{Objective: ObjectiveRank}, []float64{9}, nil},
		"pass@k":         {AdvantageConfig{Objective: ObjectivePassK, K: 1}, []float64{1, 0}, []float64{0.5, -0.5}},
		"always pass":    {AdvantageConfig{Objective: ObjectivePassK, K: 2}, []float64{1, 0, 1}, []float64{0, 0, 0}},
		"not binary":     {AdvantageConfig{Objective: ObjectivePassK, K: 1}, []float64{1, 0.5}, nil},
		"too few":        {AdvantageConfig{Objective: ObjectivePassK, K: 4}, []float64{1, 1, 1}, nil},
		"max@k":          {AdvantageConfig{Objective: ObjectiveMaxK, K: 3}, []float64{7, 2, 4}, []float64{3, 0, 0}},
		"scaled largest": {AdvantageConfig{Objective: ObjectiveMaxK, K: 2}, []float64{-math.MaxFloat64, math.MaxFloat64}, nil},
	} {
		got := Transformed(c.rewards, c.cfg)
		wantEqual(t, c.want == nil, got == nil, name)
		wantAllNear(t, c.want, got, 1e-12, name)
		c.cfg.Scale = ScaleStd
		wantEqual(t, got, Transformed(c.rewards, c.cfg), "%s: the scale must not matter", name)
	}
	wantPanic(t, func() { Transformed(nil, AdvantageConfig{K: 1}) })
}
