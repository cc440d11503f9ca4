package grpo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// tokens are the inputs of a loss, but for the denominator. Nil lists are those of one row, and on policy.
type tokens struct {
	New, Old, Advantage, Weight, Mask, Behavior, Reference, Entropy []float64
	Rows                                                            []int
}

// columns lists the numbers.
func (in *tokens) columns() []*[]float64 {
	return []*[]float64{&in.New, &in.Old, &in.Advantage, &in.Weight, &in.Mask, &in.Behavior, &in.Reference, &in.Entropy}
}

// part is the tokens from lo to hi.
func (in tokens) part(lo, hi int) tokens {
	for _, x := range in.columns() {
		if *x != nil {
			*x = (*x)[lo:hi]
		}
	}
	if in.Rows != nil {
		in.Rows = in.Rows[lo:hi]
	}
	return in
}

// padded is the tokens with padding of zeros up to n of them.
func (in tokens) padded(n int) tokens {
	for _, x := range in.columns() {
		if *x != nil {
			*x = append(slices.Clone(*x), make([]float64, n-len(*x))...)
		}
	}
	return in
}

// sequences returns the sequence of each token.
func (in tokens) sequences() []int32 {
	out := make([]int32, len(in.New))
	for i := range out {
		if in.Rows != nil {
			out[i] = int32(in.Rows[i] - in.Rows[0])
		}
	}
	return out
}

// lossResult is what a device computed.
type lossResult struct {
	loss    float64
	grad    []float64 // of the loss with respect to New
	values  []float64 // of its metrics, in the order of the spec
	metrics map[string]float64
	tokens  int // in the loss
}

// reduced returns the metrics of micro-batches, each of which is an optimizer step.
func reduced(metrics []Metric, parts ...lossResult) map[string]float64 {
	out := map[string]float64{}
	for i, m := range metrics {
		sum, most, tokens := 0.0, math.Inf(-1), 0
		for _, p := range parts {
			sum, most, tokens = sum+p.values[i], max(most, p.values[i]), tokens+p.tokens
		}
		out[m.Name] = map[Reduction]float64{
			MeanOverTokens: sum / float64(tokens), MeanOverUpdates: sum / float64(len(parts)), Maximum: most,
		}[m.Reduction]
	}
	return out
}

// deviceLoss computes the loss in T.
func deviceLoss[T float32 | float64](
	t *testing.T, device compute.Backend, l Loss, in tokens, denominator float64,
) lossResult {
	t.Helper()
	sequence := in.sequences()
	args := []*tensors.Tensor{scalar(T(denominator)), tensors.FromFlatDataAndDimensions(sequence, len(sequence), 1)}
	for _, x := range in.columns() {
		column := make([]T, len(in.New))
		for i, v := range *x {
			column[i] = T(v)
			if x == &in.Weight {
				column[i] = T(v / denominator)
			}
		}
		args = append(args, vector(column))
	}
	out := graphtest.Call(t, compiled(t, device, l.Spec().Key, func(n []*graph.Node) []*graph.Node {
		loss, m := BuildLoss(l, LossInputs{
			Denominator: n[0], Sequence: n[1], New: n[2], Old: n[3], Advantage: n[4], Weight: n[5], Mask: n[6],
			Behavior: n[7], Reference: n[8], Entropy: n[9],
		})
		return []*graph.Node{loss, graph.Gradient(loss, n[2])[0], m}
	}), args...)
	r := lossResult{loss: float64(graphtest.Values[T](t, out[0])[0])}
	for _, g := range graphtest.Values[T](t, out[1]) {
		r.grad = append(r.grad, float64(g))
	}
	for _, v := range graphtest.Values[T](t, out[2]) {
		r.values = append(r.values, float64(v))
	}
	for _, m := range in.Mask {
		r.tokens += int(m)
	}
	r.metrics = reduced(l.Spec().Metrics, r)
	return r
}

// sequenceMean is the mean over the tokens of the row of i.
func (in tokens) sequenceMean(x []float64, i int) float64 {
	sum, n := 0.0, 0.0
	for j := range x {
		if in.Mask[j] != 0 && (in.Rows == nil || in.Rows[j] == in.Rows[i]) {
			sum, n = sum+x[j], n+1
		}
	}
	return sum / n
}

// logRatios are those of the tokens.
func (in tokens) logRatios() []float64 {
	d := make([]float64, len(in.New))
	for i := range d {
		d[i] = in.New[i] - in.Old[i]
	}
	return d
}

// plainRatioOf is the importance ratio of token i, from log-ratios.
func plainRatioOf(level credit.Level, in tokens, d []float64, i int) float64 {
	switch m := in.sequenceMean(d, i); level {
	case credit.LevelSequence:
		return math.Exp(m)
	case credit.LevelAverage:
		return (math.Exp(d[i]) + math.Exp(m)) / 2
	case credit.LevelGeometric:
		return math.Sqrt(math.Exp(d[i]) * math.Exp(m))
	default:
		return math.Exp(d[i])
	}
}

// plainLoss is the loss in plain Go, token by token and from the papers. frozen, if not nil, are the log-ratios that
// are taken for constants where the loss is not differentiated through them.
func plainLoss(l PolicyLoss, in tokens, frozen []float64, denominator float64) float64 {
	l = PolicyLoss(credit.Policy(l).WithDefaults())
	lo, hi := credit.Policy(l).Bounds()
	clip := func(r float64) float64 { return math.Max(lo, math.Min(r, hi)) }
	d := in.logRatios()
	if frozen == nil {
		frozen = d
	}
	sum := 0.0
	for i := range in.New {
		if in.Mask[i] == 0 {
			continue
		}
		ratio, fixed := plainRatioOf(l.Level, in, d, i), plainRatioOf(l.Level, in, frozen, i)
		if l.MaskRatio && (fixed < lo || fixed > hi) {
			continue
		}
		a := in.Advantage[i] - l.KimiTau*frozen[i]
		var x float64
		switch l.Loss {
		case credit.CISPO:
			x = -clip(fixed) * a * in.New[i]
		case credit.ImportanceSampling:
			x = -ratio * a
		case credit.Reinforce:
			x = -a * in.New[i]
		case credit.DRO:
			x = -(a*in.New[i] - l.DROBeta/2*d[i]*d[i])
		case credit.CrossEntropy:
			x = -in.New[i] * float64(map[bool]int{true: 1}[a > 0])
		default:
			x = math.Max(-ratio*a, -clip(ratio)*a)
			if a < 0 && l.DualClip > 0 {
				x = math.Min(x, -l.DualClip*a)
			}
		}
		sum += x * in.Weight[i]
	}
	return sum / denominator
}

// randomTokens returns n tokens, both advantages, ratios on both sides of and within the bounds of all test
// configurations, and none within a tenth of a percent of a kink.
func randomTokens(src *rand.Rand, n int) tokens {
	var in tokens
	for i := range n {
		old := -0.1 - 3*src.Float64()
		in.Old = append(in.Old, old)
		shift := []float64{0, -0.4, 0.2}[i/20%3] // of a row
		in.New = append(in.New,
			old+shift+[]float64{-1.5, -0.9, -0.15, -0.05, 0, 0.05, 0.1, 0.5, 1, 1.9}[i%10]+0.001*src.Float64())
		in.Rows = append(in.Rows, i/20)
		in.Advantage = append(in.Advantage, []float64{1, -1}[i/10%2]*(0.2+src.Float64()))
		in.Weight = append(in.Weight, 0.5+src.Float64())
		in.Mask = append(in.Mask, 1)
	}
	return in
}

func ptr(x float64) *float64 { return &x }

var lossCases = map[string]PolicyLoss{
	"ppo":          {Loss: credit.PPO},
	"ppo narrow":   {Loss: credit.PPO, Epsilon: ptr(0.03), EpsilonHigh: ptr(0.4)},
	"cispo":        {Loss: credit.CISPO},
	"cispo narrow": {Epsilon: ptr(0.5), EpsilonHigh: ptr(0.25)},

	"dapo":                {Loss: credit.DAPO},
	"dual clip":           {Loss: credit.GRPO, DualClip: 2},
	"gspo":                {Loss: credit.GSPO},
	"gspo wide":           {Loss: credit.GSPO, Epsilon: ptr(0.5), EpsilonHigh: ptr(0.15)},
	"importance sampling": {Loss: credit.ImportanceSampling},
	"reinforce":           {Loss: credit.Reinforce},
	"dro":                 {Loss: credit.DRO},
	"dro strong":          {Loss: credit.DRO, DROBeta: 0.7},
	"cross-entropy":       {Loss: credit.CrossEntropy},
	"ppo average":         {Loss: credit.PPO, Level: credit.LevelAverage},
	"cispo average":       {Level: credit.LevelAverage, EpsilonHigh: ptr(0.3)},
	"ppo geometric":       {Loss: credit.PPO, Level: credit.LevelGeometric},
	"cispo sequence":      {Level: credit.LevelSequence, EpsilonHigh: ptr(0.05)},
	"importance sequence": {Loss: credit.ImportanceSampling, Level: credit.LevelSequence},
	"ppo masked":          {Loss: credit.PPO, MaskRatio: true},
	"cispo masked":        {MaskRatio: true, Epsilon: ptr(0.5)},
	"cispo kimi":          {KimiTau: 0.3},
	"ppo kimi":            {Loss: credit.PPO, KimiTau: 0.3},
}

func TestPolicyLoss_MatchesPlainGo(t *testing.T) {
	device := graphtest.Device(t)
	for name, cfg := range lossCases {
		t.Run(name, func(t *testing.T) {
			in := randomTokens(rand.New(rand.NewPCG(10, 1)), 60)
			want := plainLoss(cfg, in, nil, 50)
			require.InEpsilon(t, want, deviceLoss[float64](t, device, cfg, in, 50).loss, 1e-12)
			require.InEpsilon(t, want, deviceLoss[float32](t, device, cfg, in, 50).loss, 1e-4)
		})
	}
}

func TestPolicyLoss_GradientMatchesFiniteDifferences(t *testing.T) {
	device := graphtest.Device(t)
	for name, cfg := range lossCases {
		t.Run(name, func(t *testing.T) {
			in := randomTokens(rand.New(rand.NewPCG(11, 1)), 60)
			got := deviceLoss[float64](t, device, cfg, in, 50)
			frozen := in.logRatios()
			plain := func(x []float64) float64 {
				at := in
				at.New = x
				return plainLoss(cfg, at, frozen, 50)
			}
			want := fd.Gradient(nil, plain, in.New, &fd.Settings{Formula: fd.Central, Step: 1e-5})
			require.InDeltaSlice(t, want, got.grad, 1e-9)
			single := deviceLoss[float32](t, device, cfg, in, 50)
			require.InDeltaSlice(t, want, single.grad, 1e-6)

			if cfg.Loss == credit.PPO && cfg.KimiTau == 0 { // the device's own loss, differentiated numerically
				own := func(x []float64) float64 {
					at := in
					at.New = x
					return deviceLoss[float64](t, device, cfg, at, 50).loss
				}
				head := randomTokens(rand.New(rand.NewPCG(12, 1)), 20)
				in = head
				want := fd.Gradient(nil, own, head.New, &fd.Settings{Formula: fd.Central, Step: 1e-5})
				require.InDeltaSlice(t, want, deviceLoss[float64](t, device, cfg, head, 50).grad, 1e-9)
			}
		})
	}
}

// TestPolicyLoss_ClipSides pins what clipping is for, one token at a time: bounds 0.8 and 1.2 for PPO, 0 and 5 for
// CISPO.
func TestPolicyLoss_ClipSides(t *testing.T) {
	device := graphtest.Device(t)
	for _, c := range []struct {
		kind        credit.Loss
		ratio, a    float64
		value, grad float64 // grad with respect to new
		clipped     float64
	}{
		{credit.PPO, 1, 2, -2, -2, 0},
		{credit.PPO, 1, -2, 2, 2, 0},
		{credit.PPO, 1.1, 2, -2.2, -2.2, 0},
		{credit.PPO, 1.5, 2, -2.4, 0, 1},  // already likelier: no more of it
		{credit.PPO, 1.5, -2, 3, 3, 1},    // likelier though bad: still pushed down
		{credit.PPO, 0.5, 2, -1, -1, 1},   // less likely though good: still pushed up
		{credit.PPO, 0.5, -2, 1.6, 0, 1},  // already less likely
		{credit.CISPO, 1, 2, 6, -2, 0},    // new = -3
		{credit.CISPO, 4, 2, 24, -8, 0},   // every token has a gradient
		{credit.CISPO, 9, 2, 30, -10, 1},  // of bounded weight
		{credit.CISPO, 9, -2, -30, 10, 1}, //
		{credit.CISPO, 0.01, -2, -0.06, 0.02, 0},
	} {
		in := tokens{New: []float64{-3}, Old: []float64{-3 - math.Log(c.ratio)}, Advantage: []float64{c.a},
			Weight: []float64{1}, Mask: []float64{1}}
		got := deviceLoss[float64](t, device, PolicyLoss{Loss: c.kind}, in, 1)
		require.InDelta(t, c.value, got.loss, 1e-12, "%+v", c)
		require.InDelta(t, c.grad, got.grad[0], 1e-12, "%+v", c)
		require.Equal(t, c.clipped, got.metrics["loss/clipped_fraction"], "%+v", c)
	}
}

// TestPolicyLoss_SameGradientOnPolicy: where ratios are 1, what distinguishes losses are weights and advantages, as the
// advice on them says. Weights are the same within a sequence.
func TestPolicyLoss_SameGradientOnPolicy(t *testing.T) {
	device := graphtest.Device(t)
	in := randomTokens(rand.New(rand.NewPCG(16, 1)), 60)
	in.Old = slices.Clone(in.New)
	for i, row := range in.Rows {
		in.Advantage[i], in.Weight[i] = []float64{1.5, -0.7, 0.2}[row], []float64{0.5, 1, 2}[row]
	}
	want := deviceLoss[float64](t, device, PolicyLoss{Loss: credit.Reinforce}, in, 50).grad
	for _, kind := range credit.Losses() {
		for _, level := range []credit.Level{"token", "sequence", "average", "geometric_mean"} {
			l := PolicyLoss{Loss: kind, Level: level}
			if kind == credit.CrossEntropy || l.Validate() != nil {
				continue
			}
			require.InDeltaSlice(t, want, deviceLoss[float64](t, device, l, in, 50).grad, 1e-12, "%s %s", kind, level)
		}
	}
	require.NotEqual(t, want, deviceLoss[float64](t, device, PolicyLoss{Loss: credit.CrossEntropy}, in, 50).grad)
}

func TestPolicyLoss_MatchesTorch(t *testing.T) {
	device := graphtest.Device(t)
	for i, c := range readTorchGolden(t).Losses {
		t.Run(fmt.Sprintf("%d/%s", i, c.Loss), func(t *testing.T) {
			cfg := PolicyLoss{Loss: c.Loss, Epsilon: c.Epsilon, EpsilonHigh: c.EpsilonHigh}
			got := deviceLoss[float64](t, device, cfg, c.tokens, c.Denominator)
			require.InEpsilon(t, c.Value, got.loss, 1e-12)
			require.InDeltaSlice(t, c.Grad, got.grad, 1e-14)
		})
	}
}

// TestPolicyLoss_PaddingIsInert puts garbage into every padded input: not a bit of the result may change.
func TestPolicyLoss_PaddingIsInert(t *testing.T) {
	device := graphtest.Device(t)
	garbage := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e30, -1e30}
	for name, cfg := range lossCases {
		t.Run(name, func(t *testing.T) {
			clean := randomTokens(rand.New(rand.NewPCG(13, 1)), 60)
			for i := 20; i < 60; i++ {
				clean.New[i], clean.Old[i], clean.Advantage[i], clean.Weight[i], clean.Mask[i] = 0, 0, 0, 0, 0
			}
			want := deviceLoss[float32](t, device, cfg, clean, 20)
			require.NotZero(t, want.loss)
			for _, bad := range garbage {
				dirty := clean
				for _, x := range []*[]float64{&dirty.New, &dirty.Old, &dirty.Advantage, &dirty.Weight} {
					*x = slices.Clone(*x)
					for i := 20; i < 60; i++ {
						(*x)[i] = bad
					}
				}
				require.Equal(t, want, deviceLoss[float32](t, device, cfg, dirty, 20), "padding %v", bad)
			}
		})
	}
}

func TestPolicyLoss_MicroBatchesAddUp(t *testing.T) {
	device := graphtest.Device(t)
	for name, cfg := range lossCases {
		t.Run(name, func(t *testing.T) {
			in := randomTokens(rand.New(rand.NewPCG(14, 1)), 60)
			in.Mask[3], in.Mask[40] = 0, 0
			whole := deviceLoss[float64](t, device, cfg, in, 58)
			var sum float64
			var grad []float64
			var parts []lossResult
			for lo := 0; lo < 60; lo += 20 {
				r := deviceLoss[float64](t, device, cfg, in.part(lo, lo+20), 58)
				sum += r.loss
				grad = append(grad, r.grad...)
				parts = append(parts, r)
			}
			require.InEpsilon(t, whole.loss, sum, 1e-12)
			require.InDeltaSlice(t, whole.grad, grad, 1e-15)
			want, got := whole.metrics, reduced(cfg.Spec().Metrics, parts...)
			want["loss/policy"] /= 3 // the mean over three that are taken for updates
			require.InDeltaMapValues(t, want, got, 1e-7)
			require.Equal(t, want["loss/log_ratio_max"], got["loss/log_ratio_max"])
			require.InDelta(t, want["loss/clipped_fraction"], got["loss/clipped_fraction"], 1e-9)
		})
	}
}

// TestPolicyLoss_FarOffPolicy: a ratio that overflows must not turn the gradient of a clipped token into NaN.
func TestPolicyLoss_FarOffPolicy(t *testing.T) {
	device := graphtest.Device(t)
	in := tokens{
		New: []float64{-1, -1, -500, -500}, Old: []float64{-500, -500, -1, -1}, Advantage: []float64{1, -1, 1, -1},
		Weight: []float64{1, 1, 1, 1}, Mask: []float64{1, 1, 1, 1},
	}.padded(60)
	for name, cfg := range lossCases {
		r := deviceLoss[float32](t, device, cfg, in, 4)
		require.True(t, finite(r.loss), name)
		for _, g := range r.grad {
			require.True(t, finite(g), "%s: %v", name, r.grad)
		}
	}
	ppo := deviceLoss[float32](t, device, PolicyLoss{Loss: credit.PPO}, in, 4)
	require.Equal(t, []float64{0, 0, 0, 0}, ppo.grad[:4], "beyond exp(20) PPO has no gradient")
	cispo := deviceLoss[float32](t, device, PolicyLoss{}, in, 4)
	require.InDeltaSlice(t, []float64{-5. / 4, 5. / 4, 0, 0}, cispo.grad[:4], 1e-6)
}

// TestPolicyLoss_NonFiniteIsNotHidden: a real token that is NaN must be seen.
func TestPolicyLoss_NonFiniteIsNotHidden(t *testing.T) {
	in := randomTokens(rand.New(rand.NewPCG(15, 1)), 60)
	in.New[7] = math.NaN()
	device := graphtest.Device(t)
	for name, cfg := range lossCases {
		require.True(t, math.IsNaN(deviceLoss[float32](t, device, cfg, in, 60).loss), name)
	}
}

func TestPolicyLoss_Metrics(t *testing.T) {
	device := graphtest.Device(t)
	in := randomTokens(rand.New(rand.NewPCG(16, 1)), 60)
	in.Mask[59] = 0
	cfg := PolicyLoss{Loss: credit.PPO}
	got := deviceLoss[float32](t, device, cfg, in, 59)
	want := map[string]float64{"loss/policy": got.loss}
	for i := range 59 {
		d := in.New[i] - in.Old[i]
		want["loss/log_ratio_mean"] += math.Abs(d) / 59
		want["loss/log_ratio_max"] = max(want["loss/log_ratio_max"], math.Abs(d))
		want["loss/kl_old_new"] += (math.Expm1(d) - d) / 59
		want["loss/entropy"] -= in.New[i] / 59
		if r := math.Exp(d); r < 0.8 || r > 1.2 {
			want["loss/clipped_fraction"] += 1. / 59
		}
	}
	require.Len(t, got.metrics, len(want))
	for name, v := range want {
		require.InEpsilon(t, v, got.metrics[name], 1e-5, name)
	}
}

// TestK3_SmallDifferences: computed as written, exp(d)-1-d is off by a hundred percent below 3e-4, and may be negative.
func TestK3_SmallDifferences(t *testing.T) {
	device := graphtest.Device(t)
	var d []float32
	for x := 1e-8; x < 5; x *= 1.3 {
		d = append(d, float32(x), float32(-x))
	}
	out := graphtest.Run(t, device, func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{k3(in[0], graph.Exp(in[0]))}
	}, vector(d))
	for i, got := range graphtest.Values[float32](t, out[0]) {
		x := float64(d[i])
		want := math.Expm1(x) - x
		if math.Abs(x) < 1e-3 {
			want = x * x / 2 * (1 + x/3 + x*x/12)
		}
		tolerance := 2e-6 // of the series
		if math.Abs(x) >= 0.0999 {
			tolerance = 3e-5 // of the difference
		}
		require.InEpsilon(t, want, float64(got), tolerance, "at %g", x)
	}
}

// TestSupervisedLoss is the weighted negative log-likelihood, whatever was sampled and rewarded; its metric has no
// weights.
func TestSupervisedLoss(t *testing.T) {
	in := tokens{
		New: []float64{-1, -2, -0.5, 7}, Old: []float64{-9, -9, -9, -9}, Advantage: []float64{3, -3, 0, 3},
		Weight: []float64{1, 0.5, 1, 1}, Mask: []float64{1, 1, 1, 0},
	}
	got := deviceLoss[float64](t, graphtest.Device(t), SupervisedLoss{}, in, 4)
	require.InDelta(t, 2.5/4, got.loss, 1e-15)
	require.InDeltaSlice(t, []float64{-0.25, -0.125, -0.25, 0}, got.grad, 1e-15)
	require.InDeltaMapValues(t, map[string]float64{"loss/sft": 3.5 / 3}, got.metrics, 1e-6)
	require.False(t, SupervisedLoss{}.Spec().Sampled)
	require.NoError(t, SupervisedLoss{}.Validate())
}

// misnamed is a loss whose metrics are not those that it declares.
type misnamed struct {
	SupervisedLoss
	declared []Metric
}

func (l misnamed) Spec() LossSpec { return LossSpec{Key: "misnamed", Metrics: l.declared} }

func TestBuildLoss_Misuse(t *testing.T) {
	device := graphtest.Device(t)
	build := func(l Loss, corrupt func(in *LossInputs)) error {
		return graphx.Try(func() {
			g := graph.NewGraph(device, "misuse")
			x := func(n int) *graph.Node { return graph.Const(g, make([]float32, n)) }
			in := LossInputs{New: x(3), Old: x(3), Advantage: x(3), Weight: x(3), Mask: x(3),
				Denominator: graph.Const(g, float32(1))}
			corrupt(&in)
			BuildLoss(l, in)
		})
	}
	fine := func(*LossInputs) {}
	require.NoError(t, build(PolicyLoss{}, fine))
	require.Error(t,
		build(PolicyLoss{}, func(in *LossInputs) { in.Old = graph.Const(in.New.Graph(), make([]float32, 4)) }))
	require.Error(t, build(PolicyLoss{}, func(in *LossInputs) { in.Denominator = in.New }))
	require.ErrorContains(t, build(PolicyLoss{Loss: "sapo"}, fine), "sapo")
	require.NoError(t, build(misnamed{declared: []Metric{{Name: "loss/sft"}}}, fine))
	require.ErrorContains(t, build(misnamed{declared: []Metric{{Name: "loss/nll"}}}, fine),
		`declares the metric "loss/nll" and does not build it`)
	require.ErrorContains(t, build(misnamed{declared: []Metric{{Name: "loss/sft"}, {Name: "b"}}}, fine),
		"builds 1 metrics and declares 2")
	require.ErrorContains(t, build(misnamed{}, fine), "declares 0: want as many, and at least one")
}

// TestSpec_Keys: losses share a graph exactly when they compute the same.
func TestSpec_Keys(t *testing.T) {
	require.Equal(t, PolicyLoss{}.Spec(), PolicyLoss{Loss: credit.CISPO, Epsilon: ptr(1), EpsilonHigh: ptr(4)}.Spec())
	require.Equal(t, PolicyLoss{Loss: credit.PPO}.Spec(), PolicyLoss{Loss: credit.PPO, Epsilon: ptr(0.2)}.Spec())
	seen := map[string]bool{SupervisedLoss{}.Spec().Key: true}
	for name, l := range lossCases {
		require.False(t, seen[l.Spec().Key], name)
		seen[l.Spec().Key] = true
	}
}
