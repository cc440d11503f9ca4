package tinker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"

	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server/internal/jsoncount"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// The operations of training, which are executed in the order of their seq_id.
const (
	opCreate   = "create_model"
	opForward  = "forward"
	opBackward = "forward_backward"
	opOptim    = "optim_step"
	opSave     = "save_weights"
	opSampler  = "save_weights_for_sampler"
	opExternal = "save_weights_external"
	opLoad     = "load_weights"
)

// isForward reports whether an operation has data, and so may be large.
func isForward(op string) bool { return op == opForward || op == opBackward }

// call is one of them, as it came. While it waits it holds its body once, and not what the body decodes to.
type call struct {
	op, media string
	record    []byte              // the body of its record in the journal
	run       string              // where it belongs, "" if it makes a run
	seq       int                 // its place there
	small     *tinkerwire.Request // nil for forward passes
}

// parseCall reads the body of an operation.
func parseCall(op, media string, body []byte, limits *Limits) (*call, error) {
	c := &call{op: op, media: media}
	if isForward(op) {
		req, err := parseForward(op, media, body, limits)
		if err != nil {
			return nil, err
		}
		if req.ForwardOnly {
			c.op = opForward
		}
		c.run, c.seq = req.ModelID, req.SeqID
	} else if err := checkCounts(smallCounts, body); err != nil {
		return nil, err
	} else if err := c.parseSmall(body); err != nil {
		return nil, err
	}
	c.record = bytes.Join([][]byte{[]byte(c.op), []byte(media), body}, []byte{0})
	return c, nil
}

// parseForward reads the body of a forward pass.
func parseForward(op, media string, body []byte, limits *Limits) (req *tinkerwire.ForwardRequest, err error) {
	if media == tinkerwire.ProtoType {
		req, err = tinkerwire.ParseForwardRequest(body, tinkerwire.Bounds{
			Data: limits.Datums, Chunks: maxChunks * limits.Datums, Tensors: maxInputs * limits.Datums,
			Options: 2 * maxOptions, // in two maps
		})
	} else if err = checkCounts(limits.forwardCounts(), body); err == nil {
		req = &tinkerwire.ForwardRequest{}
		err = json.Unmarshal(body, req)
	}
	return req, unreadable(op, err)
}

// unreadable is the error of a body that cannot be read.
func unreadable(op string, err error) error {
	if err == nil {
		return nil
	}
	return failf(http.StatusBadRequest, "the body of %s cannot be read: %v", op, err)
}

// parseSmall reads the body of another operation.
func (c *call) parseSmall(body []byte) error {
	c.small = &tinkerwire.Request{}
	if err := unreadable(c.op, json.Unmarshal(body, c.small)); err != nil {
		return err
	}
	c.run, c.seq = c.small.ModelID, c.small.SeqID
	return nil
}

// changes reports whether the call changes the training state without storing it.
func (c *call) changes() bool { return c.op == opCreate || c.op == opBackward || c.op == opLoad }

// decodeCall reads the body of a record of the journal.
func decodeCall(record []byte) (*call, error) {
	parts := bytes.SplitN(record, []byte{0}, 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("a record of a request has %d parts", len(parts))
	}
	c := &call{op: string(parts[0]), media: string(parts[1]), record: record}
	if isForward(c.op) {
		return c, nil
	}
	return c, c.parseSmall(parts[2])
}

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
	maps.DeleteFunc(out.Metrics, notFinite)
	return out
}

// notFinite reports whether a metric is a number that JSON does not have.
func notFinite(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

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

// What no client sends more of, whatever the limits of its tenant are.
const (
	maxInputs  = 8    // tensors of a datum
	maxChunks  = 64   // of a datum, on average
	maxOptions = 64   // of a loss
	maxStops   = 256  // texts or tokens that end a sample
	maxTags    = 256  // of a session
	maxOther   = 4096 // elements of lists that have no limit of their own
)

// forwardCounts are the counts of a forward pass in JSON, where numbers take more memory than in the body.
func (l *Limits) forwardCounts() *jsoncount.Limits {
	return &jsoncount.Limits{
		Lists: map[string]int{
			"forward_backward_input.data": l.Datums, "forward_input.data": l.Datums, "chunks": maxChunks * l.Datums,
			"tokens": l.Tokens, "loss_fn_inputs": maxInputs * l.Datums, "data": maxInputs * l.Tokens,
			"shape": 2 * maxInputs * l.Datums, "sparse_crow_indices": l.Tokens + l.Datums, "sparse_col_indices": l.Tokens,
		},
		Trees: map[string]int{"loss_fn_config": maxOptions}, Other: maxOther,
	}
}

// sampleCounts are the counts of asample.
func (l *Limits) sampleCounts() *jsoncount.Limits {
	return &jsoncount.Limits{
		Lists: map[string]int{
			"chunks": maxChunks * l.Datums, "tokens": l.Tokens, "stop": maxStops, "data": l.Tokens,
			"sparse_crow_indices": l.Tokens, "sparse_col_indices": l.Tokens,
		},
		Other: maxOther,
	}
}

// smallCounts are those of other requests. Metadata is bounded in bytes, too.
var smallCounts = &jsoncount.Limits{
	Lists: map[string]int{"tags": maxTags}, Trees: map[string]int{"user_metadata": 1 << 14}, Other: maxOther,
}

// checkCounts refuses a body that has too much of something, before it is decoded.
func checkCounts(counts *jsoncount.Limits, body []byte) error {
	if err := counts.Check(body); err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	return nil
}
