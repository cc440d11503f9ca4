// Package arttest has a fake [art.Backend] without a model, for tests and examples of code that only calls a backend.
package arttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
)

// Backend is an [art.Backend] in memory, with every optional interface. Its zero value is ready for use; set the
// function fields before. To hide the optional interfaces, wrap it: struct{ art.Backend }{fake}.
//
// A token is a rune, and its logprob is made up; both depend on the request only. A training step counts what can be
// trained on and commits; replies stay the same, unless Reply depends on m.Step().
type Backend struct {
	// Reply writes the reply to a request. Default: letters that depend on the seed and the conversation; see also
	// [Script].
	Reply func(ctx context.Context, m *art.Model, req *art.ChatRequest) (art.Message, error)
	// Learn is called by Train before the step is committed. Its error fails the training. May be nil.
	Learn func(ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig) error

	training sync.Mutex // one training at a time
	mu       sync.Mutex // guards what follows
	closed   bool
	runs     map[*art.Model]*run
	released []*run
}

// run is the state of one model.
type run struct {
	name        string // with its project; "" of a snapshot
	step        int
	checkpoints []int
	rows        []art.HistoryRow
	logged      map[logKey][]*art.TrajectoryGroup
	state       any // of the user
	training    training
	published   training // of the newest step
	unpublished bool     // training is another one
	saved       []saved
}

var (
	_ art.Backend             = (*Backend)(nil)
	_ driver.BaseChooser      = (*Backend)(nil)
	_ driver.Logger           = (*Backend)(nil)
	_ driver.CheckpointKeeper = (*Backend)(nil)
	_ driver.SFTTrainer       = (*Backend)(nil)
	_ driver.DPOTrainer       = (*Backend)(nil)
	_ driver.HTTPServer       = (*Backend)(nil)
)

// Script returns a Reply that answers a conversation with i assistant messages with the i-th text, and starts over
// after the last. Replies do not depend on other conversations.
func Script(replies ...string) func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
	return func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		turn := 0
		for i := range req.Messages {
			if req.Messages[i].Role == art.RoleAssistant {
				turn++
			}
		}
		return art.Assistant(replies[turn%len(replies)]), nil
	}
}

// DefaultBase implements [driver.BaseChooser].
func (b *Backend) DefaultBase(*art.Model) string { return "tiny" }

// Register implements [art.Backend].
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ready(ctx, "register"); err != nil {
		return 0, err
	}
	for _, other := range b.runs {
		if other.name == runName(m) {
			err := fmt.Errorf("%w: model %q is already registered", art.ErrInvalid, m.Name())
			return 0, &art.Error{Op: "register", Err: err, Hint: "register each run once"}
		}
	}
	if b.runs == nil {
		b.runs = map[*art.Model]*run{}
	}
	if at := slices.IndexFunc(b.released, func(r *run) bool { return r.name == runName(m) }); at >= 0 {
		b.runs[m] = b.released[at]
		b.released = slices.Delete(b.released, at, at+1)
		return b.runs[m].step, nil
	}
	b.runs[m] = &run{name: runName(m), logged: map[logKey][]*art.TrajectoryGroup{}}
	return 0, nil
}

// ready returns the error of a context that has ended or a backend that is closed. b.mu is held.
func (b *Backend) ready(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &art.Error{Op: op, Err: err, Hint: "the context ended"}
	}
	if b.closed {
		return &art.Error{Op: op, Err: art.ErrClosed, Hint: "open another backend"}
	}
	return nil
}

// run returns the state of a model. b.mu is held.
func (b *Backend) run(ctx context.Context, op string, m *art.Model) (*run, error) {
	if err := b.ready(ctx, op); err != nil {
		return nil, err
	}
	if r := b.runs[m]; r != nil {
		return r, nil
	}
	return nil, &art.Error{Op: op, Err: art.ErrNotRegistered, Hint: "call Model.Register first"}
}

// step returns the step that a model is at.
func (b *Backend) step(ctx context.Context, op string, m *art.Model) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, op, m)
	if err != nil {
		return 0, err
	}
	return r.step, nil
}

// Complete implements [art.Backend].
func (b *Backend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	step, err := b.step(ctx, "complete", m)
	if err != nil {
		return nil, err
	}
	reply := b.Reply
	if reply == nil {
		reply = babble
	}
	message, err := reply(ctx, m, req)
	if err != nil {
		return nil, err
	}
	if pinned, ok := ctx.Value(pinKey{m}).(int); ok {
		step = pinned
	}
	return respond(m, step, req, message), nil
}

// Train implements [art.Backend].
func (b *Backend) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	if len(groups) == 0 {
		return nil, &art.Error{Op: "train", Err: art.ErrNoGroups, Hint: "gather at least one"}
	}
	trainable, skipped := sift(groups)
	metrics := map[string]float64{"data/groups_trainable": float64(trainable)}
	return b.advance(ctx, "train", m, groups, &art.TrainResult{Metrics: metrics, Skipped: skipped}, func() error {
		if b.Learn != nil {
			if err := b.Learn(ctx, m, groups, cfg); err != nil {
				return err
			}
		}
		if cfg.Progress != nil {
			cfg.Progress(art.TrainProgress{Done: 1, Total: 1, Metrics: metrics})
		}
		return nil
	})
}

// TrainSFT implements [driver.SFTTrainer].
func (b *Backend) TrainSFT(
	ctx context.Context, m *art.Model, trajectories []*art.Trajectory, _ *art.SFTConfig,
) (*art.TrainResult, error) {
	result := &art.TrainResult{Metrics: map[string]float64{"data/trajectories": float64(len(trajectories))}}
	return b.advance(ctx, "train sft", m, nil, result, func() error { return nil })
}

// TrainDPO implements [driver.DPOTrainer].
func (b *Backend) TrainDPO(
	ctx context.Context, m *art.Model, pairs []art.Preference, _ *art.DPOConfig,
) (*art.TrainResult, error) {
	result := &art.TrainResult{Metrics: map[string]float64{"data/groups": float64(len(pairs))}}
	return b.advance(ctx, "train dpo", m, nil, result, func() error { return nil })
}

// advance makes a step and commits it with its row. groups are those whose rewards belong to it.
func (b *Backend) advance(ctx context.Context, op string, m *art.Model, groups []*art.TrajectoryGroup,
	result *art.TrainResult, work func() error,
) (*art.TrainResult, error) {
	b.training.Lock()
	defer b.training.Unlock()
	if err := b.begin(ctx, op, m); err != nil {
		return nil, err
	}
	if err := work(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, op, m)
	if err != nil {
		return nil, err
	}
	row := map[string]float64{}
	for key, value := range art.Metrics(groups...) {
		row["train/"+key] = value
	}
	maps.Copy(row, result.Metrics)
	r.log("train", r.step, groups, row)
	r.step++
	r.checkpoints = append(r.checkpoints, r.step)
	result.Step = r.step
	return result, nil
}

// begin checks that a step can be made of a model by another way than loop.Trainer.
func (b *Backend) begin(ctx context.Context, op string, m *art.Model) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, op, m)
	if err == nil && r.unpublished {
		err = invalid(op, "the training state is not published")
	}
	return err
}

// Close implements [art.Backend].
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// Logged returns the groups that were logged last under (split, step).
func (b *Backend) Logged(m *art.Model, split string, step int) []*art.TrajectoryGroup {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[m]; r != nil {
		return r.logged[logKey{split, step}]
	}
	return nil
}

// logKey names a row.
type logKey struct {
	split string
	step  int
}

// Log implements [driver.Logger].
func (b *Backend) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "log", m)
	if err != nil {
		return err
	}
	r.log(split, step, groups, metrics)
	return nil
}

// log merges metrics into a row, and replaces its groups.
func (r *run) log(split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64) {
	copies := make([]*art.TrajectoryGroup, len(groups))
	for i, g := range groups {
		copies[i] = g.Clone()
	}
	r.logged[logKey{split, step}] = copies
	for _, row := range r.rows {
		if row.Split == split && row.Step == step {
			maps.Copy(row.Metrics, metrics)
			return
		}
	}
	row := map[string]float64{}
	maps.Copy(row, metrics)
	r.rows = append(r.rows, art.HistoryRow{Split: split, Step: step, Metrics: row})
}

// Checkpoints implements [driver.CheckpointKeeper].
func (b *Backend) Checkpoints(ctx context.Context, m *art.Model) ([]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "list checkpoints", m)
	if err != nil {
		return nil, err
	}
	return slices.Clone(r.checkpoints), nil
}

// History implements [driver.CheckpointKeeper], after Close too.
func (b *Backend) History(ctx context.Context, m *art.Model) ([]art.HistoryRow, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[m]
	if err := ctx.Err(); err != nil {
		return nil, &art.Error{Op: "read history", Err: err, Hint: "the context ended"}
	}
	if r == nil {
		return nil, &art.Error{Op: "read history", Err: art.ErrNotRegistered, Hint: "call Model.Register first"}
	}
	rows := slices.Clone(r.rows)
	for i := range rows {
		rows[i].Metrics = maps.Clone(rows[i].Metrics)
	}
	return rows, nil
}

// DeleteCheckpoints implements [driver.CheckpointKeeper].
func (b *Backend) DeleteCheckpoints(ctx context.Context, m *art.Model, keep []int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "delete checkpoints", m)
	if err != nil {
		return err
	}
	r.checkpoints = slices.DeleteFunc(r.checkpoints, func(step int) bool { return !slices.Contains(keep, step) })
	return nil
}
