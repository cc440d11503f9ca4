package tinker

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// extremes are tensors of targets for an input of four tokens that are not what they say.
func extremes() map[string]tinkerwire.Tensor {
	const huge = math.MaxInt64/2 + 1 // four times it is 0
	all := map[string]tinkerwire.Tensor{"values without a shape": {DType: tinkerwire.Int64, Ints: make([]int64, 7)}}
	for _, shape := range [][]int64{
		{0, huge}, {0, math.MaxInt64}, {4, huge}, {huge, 4}, {huge, 0}, {0, 0}, {0}, {-1}, {-4, -1}, {4, -1}, {4, 0}, {1, 4, 1},
		{4, 1, huge}, {1 << 32, 1 << 32}, {math.MinInt64, 2}, {2, math.MinInt64}, {4, math.MaxInt32}, {4, 1 << 32}, {2, 2},
		{8}, {1, 1, 1, 1, 1, 1, 1, 1, 4}, {math.MaxInt64}, {math.MinInt64},
	} {
		for _, n := range []int{0, 4} {
			all[fmt.Sprintf("%d values, shape %v", n, shape)] = tinkerwire.Tensor{
				DType: tinkerwire.Int64, Shape: shape, Ints: make([]int64, n),
			}
		}
		rows := make([]int64, 5)
		all[fmt.Sprintf("sparse, shape %v", shape)] = tinkerwire.Tensor{
			DType: tinkerwire.Int64, Shape: shape, Rows: rows, Columns: []int64{},
		}
		all[fmt.Sprintf("sparse without rows, shape %v", shape)] = tinkerwire.Tensor{
			DType: tinkerwire.Int64, Shape: shape, Rows: []int64{0}, Columns: []int64{},
		}
	}
	all["a column beyond"] = tinkerwire.Tensor{DType: tinkerwire.Int64, Shape: []int64{4, 2}, Ints: []int64{1},
		Rows: []int64{0, 1, 1, 1, 1}, Columns: []int64{huge}}
	all["rows beyond"] = tinkerwire.Tensor{DType: tinkerwire.Int64, Shape: []int64{4, 2}, Ints: []int64{1},
		Rows: []int64{0, huge, math.MinInt64, 1, 1}, Columns: []int64{0}}
	all["a token beyond"] = tinkerwire.NewInts([]int64{1, 2, 3, math.MaxInt32})
	all["a negative token"] = tinkerwire.NewInts([]int64{1, 2, 3, math.MinInt64})
	return all
}

// TestExtremeShapes_Engine: whatever shape comes, in either dialect, the operation alone fails, with the engine behind.
func TestExtremeShapes_Engine(t *testing.T) {
	dir := t.TempDir()
	b, err := local.Open(t.Context(), &local.Options{Dir: dir, Context: 64, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, c := serveFaulty(t, b, t.TempDir(), nil)
	defer closeServer(t, s)
	model, seq := c.model(), 0
	request := func(loss string, inputs map[string]tinkerwire.Tensor) *tinkerwire.ForwardRequest {
		return &tinkerwire.ForwardRequest{ModelID: model, SeqID: seq + 1, Loss: loss, Data: []tinkerwire.Datum{{
			Input: tinkerwire.NewInput([]int32{1, 2, 3, 4}), Inputs: inputs,
		}}}
	}
	good := tinkerwire.NewInts([]int64{2, 3, 4, 5})
	loss := func() float64 {
		req := request("cross_entropy", map[string]tinkerwire.Tensor{"target_tokens": good})
		seq++
		req.ForwardOnly = true
		return c.loss(c.result(c.ok("forward", req).RequestID))
	}
	want := loss()
	try := func(name string, req *tinkerwire.ForwardRequest) {
		t.Helper()
		for _, body := range []any{req, *req} {
			req.SeqID = seq + 1
			if _, isJSON := body.(tinkerwire.ForwardRequest); isJSON {
				body = *req
			}
			status, data := c.call("POST", "forward_backward", body)
			if status == http.StatusBadRequest {
				continue // it is no operation
			}
			var out tinkerwire.Result
			if err := json.Unmarshal(data, &out); err != nil || status != http.StatusOK {
				t.Fatalf("%s: status %d: %s", name, status, data)
			}
			data = c.result(out.RequestID)
			seq++
			var result tinkerwire.Result
			err := json.Unmarshal(data, &result)
			if err != nil || result.Category != "user" || strings.Contains(result.Error, dir) {
				t.Errorf("%s: %T: %s", name, body, data)
			}
		}
	}
	for name, targets := range extremes() {
		try(name, request("cross_entropy", map[string]tinkerwire.Tensor{"target_tokens": targets}))
	}
	for name, list := range extremes() {
		for _, of := range []string{"weights", "advantages", "logprobs"} {
			floats := list
			floats.DType, floats.Floats, floats.Ints = tinkerwire.Float32, make([]float32, len(list.Ints)+1), nil
			inputs := map[string]tinkerwire.Tensor{"target_tokens": good, of: floats}
			if of != "weights" {
				inputs["weights"] = tinkerwire.NewFloats(make([]float32, 4))
			}
			try(of+": "+name, request("ppo", inputs))
		}
	}
	got := loss()
	if got != want || want == 0 {
		t.Errorf("the loss is %v, was %v", got, want)
	}
}

// TestDiskFull_Engine: an update that cannot be stored is taken back from the real engine too, at the first step as at
// later ones.
func TestDiskFull_Engine(t *testing.T) {
	weights := func(full bool) float64 {
		b, err := local.Open(t.Context(), &local.Options{Dir: t.TempDir(), Context: 64, Slots: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		failing := &fullDisk{Backend: b}
		s, c := serveFaulty(t, failing, t.TempDir(), nil)
		defer closeServer(t, s)
		model, seq := c.model(), 0
		for range 2 {
			seq++
			c.await("forward_backward", backward(model, seq, 7))
			if failing.full = full; full {
				seq++
				c.failure("optim_step", step(model, seq))
				failing.full = false
			}
			seq++
			c.await("optim_step", step(model, seq))
		}
		return c.weight(model, seq+1)
	}
	if got, want := weights(true), weights(false); got != want {
		t.Errorf("the loss is %v, want %v", got, want)
	}
}

// fullDisk is an engine that cannot store a step. It has no method that [local.Backend] lacks.
type fullDisk struct {
	*local.Backend
	full bool
}

// Publish fails while the disk is full.
func (b *fullDisk) Publish(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, metrics map[string]float64,
) (int, error) {
	if b.full {
		return 0, &art.Error{Op: "publish", Err: fmt.Errorf("%w: %w", art.ErrStorage, syscall.ENOSPC)}
	}
	return b.Backend.Publish(ctx, m, groups, metrics)
}
