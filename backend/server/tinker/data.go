package tinker

import (
	"fmt"
	"math"
	"net/http"

	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// convertData converts the data of a request, and counts their tokens.
func convertData(req *tinkerwire.ForwardRequest, limits *Limits) (data []loop.Datum, tokens int, err error) {
	if n := len(req.Data); n > limits.Datums {
		return nil, 0, failf(http.StatusBadRequest, "%d data in a request, want at most %d", n, limits.Datums)
	}
	for key := range req.Text {
		return nil, 0, failf(http.StatusBadRequest, "the option %.40q of the loss is a text, want a number", key)
	}
	for i := range req.Data {
		d, err := convertDatum(&req.Data[i], limits, limits.Tokens-tokens)
		if err != nil {
			return nil, 0, failf(http.StatusBadRequest, "datum %d: %v", i, err)
		}
		tokens += max(len(d.Input), len(d.Targets))
		data = append(data, d)
	}
	return data, tokens, nil
}

// convertDatum converts one datum of at most limit tokens.
func convertDatum(in *tinkerwire.Datum, limits *Limits, limit int) (d loop.Datum, err error) {
	if d.Input, err = in.Input.Tokens(); err != nil {
		return d, err
	}
	for name, t := range in.Inputs {
		if len(t.Shape) == 2 && t.Shape[1] > int64(limits.Targets) {
			return d, fmt.Errorf("%.40q has %d values at a position, want at most %d", name, t.Shape[1], limits.Targets)
		}
	}
	targets, ok := in.Inputs[targetTokens]
	if !ok {
		return d, fmt.Errorf("there are no %s", targetTokens)
	}
	if err := setInput(&d, targetTokens, &targets, max(limit, 0)); err != nil {
		return d, err
	}
	for name, t := range in.Inputs { // as many values as targets, so that a sparse one makes no more
		if name == targetTokens {
			continue
		}
		if err := setInput(&d, name, &t, len(d.Targets)); err != nil {
			return d, err
		}
	}
	return d, nil
}

// targetTokens is the input of a loss that every datum has.
const targetTokens = "target_tokens"

// setInput sets one input of the loss, which has at most limit values.
func setInput(d *loop.Datum, name string, in *tinkerwire.Tensor, limit int) error {
	t, err := in.Dense(limit)
	switch {
	case err != nil:
	case name != targetTokens:
		err = setList(d, name, &t)
	case max(t.Len(), len(d.Input)) > limit:
		err = fmt.Errorf("the request has too many tokens; split it")
	default:
		err = setTargets(d, &t)
	}
	if err != nil {
		return fmt.Errorf("%.40q: %w", name, err)
	}
	return nil
}

// setList sets a list of numbers.
func setList(d *loop.Datum, name string, t *tinkerwire.Tensor) error {
	lists := map[string]*[]float32{"weights": &d.Weights, "logprobs": &d.Logprobs, "advantages": &d.Advantages}
	list := lists[name]
	if list == nil {
		return fmt.Errorf("it is not an input of a loss; there are target_tokens, weights, logprobs and advantages")
	}
	*list = t.Floats
	if t.DType == tinkerwire.Int64 { // whole numbers
		*list = make([]float32, len(t.Ints))
		for i, x := range t.Ints {
			(*list)[i] = float32(x)
		}
	}
	return nil
}

// setTargets sets the targets, [N] or [N, K]. -1 is none: see [tinkerwire.NoTarget].
func setTargets(d *loop.Datum, t *tinkerwire.Tensor) error {
	if t.DType != tinkerwire.Int64 {
		return fmt.Errorf("it has dtype %s, want int64", t.DType)
	}
	if len(t.Shape) > 2 {
		return fmt.Errorf("it has shape %v, want [N] or [N, K]", t.Shape)
	}
	if len(t.Shape) == 2 {
		d.K = int(t.Shape[1])
	}
	d.Targets = make([]int32, len(t.Ints))
	for i, id := range t.Ints {
		if id < int64(loop.NoTarget) || id > math.MaxInt32 {
			return fmt.Errorf("it has %d at %d, which is no token", id, i)
		}
		d.Targets[i] = int32(id)
	}
	return nil
}

// output converts a result. Metrics are sums and extremes, so that those of the parts of one call can be merged.
func output(data []loop.Datum, result *loop.ForwardResult, req *tinkerwire.ForwardRequest) *tinkerwire.ForwardOutput {
	out := &tinkerwire.ForwardOutput{Type: "scalar", Metrics: map[string]float64{"loss:sum": result.Loss}}
	targets := 0
	for i, list := range result.Logprobs {
		shape := []int64{int64(len(list))}
		if k := data[i].K; k > 1 {
			shape = []int64{int64(len(list) / k), int64(k)}
		}
		for j := range data[i].Targets {
			if data[i].InLoss(credit.Loss(req.Loss), j) {
				targets++
			}
		}
		out.Outputs = append(out.Outputs, map[string]tinkerwire.Tensor{"logprobs": tinkerwire.NewFloats(list, shape...)})
	}
	out.Metrics["targets:sum"] = float64(targets)
	if len(result.NotFinite) > 0 {
		out.Metrics["not_finite:sum"] = float64(len(result.NotFinite))
	}
	for name, x := range result.Metrics {
		out.Metrics[name+":mean"] = x
	}
	ratios(out.Metrics, data, result, req)
	for name, x := range out.Metrics {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			delete(out.Metrics, name) // JSON has no such numbers
		}
	}
	return out
}

// ratios adds what policy losses measure over the targets in the loss that have an advantage: the sum of p - q, which
// is minus an estimate of KL(q, p); the extremes of the ratio exp(p - q); and how many of them are outside of the
// bounds of the loss.
func ratios(
	metrics map[string]float64, data []loop.Datum, result *loop.ForwardResult, req *tinkerwire.ForwardRequest,
) {
	lo, hasLow := req.Config["clip_low_threshold"] // a bound that is not given is not counted
	hi, hasHigh := req.Config["clip_high_threshold"]
	low, high, sum, n, clipped := math.Inf(1), math.Inf(-1), 0.0, 0, 0
	for i := range data {
		for j, a := range data[i].Advantages {
			if a == 0 || !data[i].InLoss(credit.Loss(req.Loss), j) {
				continue
			}
			gap := float64(result.Logprobs[i][j]) - float64(data[i].Logprobs[j])
			ratio := math.Exp(gap)
			low, high, sum, n = min(low, ratio), max(high, ratio), sum+gap, n+1
			if hasLow && ratio < lo || hasHigh && ratio > hi {
				clipped++
			}
		}
	}
	if n == 0 {
		return
	}
	metrics["action_tokens:sum"], metrics["logprob_gap:sum"] = float64(n), sum
	metrics["ratio:min"], metrics["ratio:max"] = low, high
	if hasLow || hasHigh {
		metrics["ratio_outside:sum"] = float64(clipped)
	}
}
