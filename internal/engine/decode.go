package engine

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/model"
)

// A device with loops decodes many tokens of each slot in one call: it computes a token, samples the next one, and goes
// on until all slots are done or the call has made its number of steps. The device ends a slot by count and by the
// first maxEnds end ids. All other ends are found by the host, which discards the tokens that follow.

// maxEnds is the number of end ids of a request that the device looks for.
const maxEnds = 8

// noToken is not an id of any vocabulary.
const noToken = -1

// decodeCall is what a call does for one row. The zero value does nothing.
type decodeCall struct {
	token    int32 // to compute first
	start    int   // tokens in the cache
	blocks   []int32
	count    int // tokens to sample at most
	ends     []int32
	sampling model.Sampling
	uniform  []float64 // random numbers, one for each token to sample
}

// sampled is what a call has made: the tokens of each row, in a number of steps.
type sampled struct {
	tokens [][]Token
	steps  int
	shared bool // the rows had something in common that was read once
}

// decode runs calls, and some that do nothing where there is no graph of their number. After an error the cache is
// lost.
func (r *runner) decode(a *Adapter, calls []decodeCall) (s sampled, err error) {
	plan := planDecode(r.opts, calls)
	var state []any
	state, plan.Cuts = r.decodeInputs(plan.calls, plan.Window)
	out, err := r.decodeTo(a, plan, state)
	if err != nil {
		return s, err
	}
	if s, err = readSamples(out, r.opts.DecodeSteps); err != nil {
		return s, err
	}
	s.tokens, s.shared = plan.inOrder(s.tokens), plan.Prefix > 0
	return s, nil
}

// decodeTo runs a loop, and returns what it has sampled.
func (r *runner) decodeTo(a *Adapter, plan decodePlan, state []any) ([]*tensors.Tensor, error) {
	p, rows := plan.Program, copiesRows(r.opts, plan.Program)
	read, at := r.cache.donate, []any(nil)
	if rows {
		read, at = r.cache.read, r.rowsAt(plan)
		state = append(state, at[rowBlocks])
	}
	if p.Prefix > 0 {
		state = append(state, r.prefixesAt(plan)...)
	}
	layers, err := read()
	if err != nil {
		return nil, err
	}
	d := &decoding{runner: r, adapter: a, cuts: p.Cuts, rows: rows, prefix: p.Prefix > 0, repeat: while}
	if r.opts.unroll {
		d.repeat = unrolled(r.opts.DecodeSteps)
	}
	out, err := r.call(a, p, d.build, slices.Concat(r.weights(a), layers, state))
	if err != nil {
		return nil, err
	}
	if !rows {
		r.cache.layers = out[5:]
		return out[:5], nil
	}
	return out[:5], r.store(p, out[5:], at)
}

// decodeInputs returns the initial state of the loop that follows the cache, in the order of the constants below.
func (r *runner) decodeInputs(calls []decodeCall, window int) (in []any, cuts model.Cuts) {
	w, n := len(calls), r.opts.DecodeSteps
	token, start, count := make([]int32, w), make([]int32, w), make([]int32, w)
	ends, uniform, sampling := make([]int32, w*maxEnds), make([]float64, w*n), make([]model.Sampling, w)
	for i := range ends {
		ends[i] = noToken
	}
	blocks := make([][]int32, w)
	for i, c := range calls {
		blocks[i] = c.blocks
		token[i], start[i], count[i], sampling[i] = c.token, int32(c.start), int32(c.count), c.sampling
		copy(ends[i*maxEnds:(i+1)*maxEnds], c.ends)
		copy(uniform[i*n:], c.uniform)
	}
	temperature, topP, topK, cuts := model.SamplerInputs(sampling)
	return []any{
		tensors.FromFlatDataAndDimensions(token, w), tensors.FromFlatDataAndDimensions(start, w),
		tensors.FromFlatDataAndDimensions(count, w), table(blocks, w, window),
		tensors.FromFlatDataAndDimensions(ends, w, maxEnds),
		tensors.FromFlatDataAndDimensions(uniform, w, n), tensors.FromFlatDataAndDimensions(temperature, w),
		tensors.FromFlatDataAndDimensions(topP, w), tensors.FromFlatDataAndDimensions(topK, w),
		tensors.FromScalar(int32(0)), tensors.FromScalar(int32(1)),
		tensors.FromFlatDataAndDimensions(make([]int32, w*n), w, n),
		tensors.FromFlatDataAndDimensions(make([]float32, w*n), w, n),
		tensors.FromFlatDataAndDimensions(make([]float32, w*n), w, n),
	}, cuts
}

// readSamples reads counts [W], ids, logprobs and reshaped logprobs [W, N], and the number of steps from the device.
func readSamples(out []*tensors.Tensor, n int) (s sampled, err error) {
	defer func() {
		for _, x := range out {
			_ = x.FinalizeAll() // an error of the read is the one to report
		}
	}()
	counts, err := tensors.CopyFlatData[int32](out[0])
	if err != nil {
		return s, err
	}
	ids, err := tensors.CopyFlatData[int32](out[1])
	if err != nil {
		return s, err
	}
	logprobs, err := tensors.CopyFlatData[float32](out[2])
	if err != nil {
		return s, err
	}
	reshaped, err := tensors.CopyFlatData[float32](out[3])
	if err != nil {
		return s, err
	}
	steps, err := tensors.CopyFlatData[int32](out[4])
	if err != nil {
		return s, err
	}
	s = sampled{tokens: make([][]Token, len(counts)), steps: int(steps[0])}
	for i, count := range counts {
		for j := i * n; j < i*n+int(count); j++ {
			s.tokens[i] = append(s.tokens[i], Token{ID: ids[j], Logprob: logprobs[j], Sampled: reshaped[j]})
		}
	}
	return s, nil
}

// checkLoops refuses several decoding steps per call on a device without loops.
func checkLoops(device compute.Backend, steps int) error {
	if steps > 1 && !device.Capabilities().Functions {
		return fmt.Errorf("engine: %d tokens a call: device %q has no loops; ask for 1, or use a device of XLA",
			steps, device.Name())
	}
	return nil
}
