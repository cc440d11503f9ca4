package wandb

import (
	"bytes"
	"context"
	"crypto/rand"

	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainset"
	"github.com/goart-dev/art/internal/wandbwire"
)

// Train sends groups to the service, waits for the end of the training, and notes the step in the run directory, with
// the groups, their metrics and those of the service. Options that the service does not have are an
// [art.ErrUnsupported]. A training is never sent twice: when the answer to it is lost, the error says so, and the next
// call begins with what the service has made of it.
func (b *Backend) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	const op = "train"
	if len(groups) == 0 {
		return nil, &art.Error{Op: op, Err: art.ErrNoGroups, Hint: "gather groups first"}
	}
	config, err := trainOptions(cfg)
	if err != nil {
		return nil, err
	}
	encoded, err := wandbwire.Encode(sendable(groups))
	if err != nil {
		return nil, &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: "correct the groups"}
	}
	body := func(e *entry) (any, error) {
		return &wandbwire.CreateJob{ModelID: e.model.ID, Groups: encoded, Config: config}, nil
	}
	t := &training{op: op, path: "preview/training-jobs", body: body, groups: groups, tell: cfg.Progress}
	result, err := b.train(ctx, m, t)
	if err == nil { // services do not tell what they leave out; ours leaves out the same
		set := trainset.FromGroups(groups, cfg, m.Step(), math.MaxInt, math.MaxInt32)
		result.Skipped, result.Advantages = set.Skipped, set.Advantages
	}
	return result, err
}

// CheckTrain returns an [art.ErrUnsupported] for options that the service does not have.
func (b *Backend) CheckTrain(cfg *art.TrainConfig) error {
	_, err := trainOptions(cfg)
	return err
}

// trainOptions translates a configuration.
func trainOptions(cfg *art.TrainConfig) (*wandbwire.RLTrain, error) {
	config, err := wandbwire.NewRLTrain(cfg)
	if err != nil {
		err = fmt.Errorf("%w: %w", art.ErrUnsupported, err)
		return nil, &art.Error{Op: "train", Err: err, Hint: "leave it out of TrainConfig"}
	}
	return config, nil
}

// sendable leaves out the trajectories that cannot be trained on, or sent.
func sendable(groups []*art.TrajectoryGroup) (out []*art.TrajectoryGroup) {
	special := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) } // JSON cannot hold it
	broken := func(s *art.Sample) bool {
		return len(s.Logprobs) != len(s.IDs) ||
			slices.ContainsFunc(s.Logprobs, func(x float32) bool { return special(float64(x)) })
	}
	for _, g := range runs.Present(groups) {
		kept := *g // the group is the caller's
		kept.Trajectories = slices.DeleteFunc(slices.Clone(g.Trajectories), func(t *art.Trajectory) bool {
			return special(t.Reward) || len(t.Samples()) == 0 || slices.ContainsFunc(t.Samples(), broken)
		})
		if len(kept.Trajectories) > 0 {
			out = append(out, &kept)
		}
	}
	return out
}

// TrainSFT stores the conversations as a data set, trains on it, and notes the step; see [Backend.Train].
func (b *Backend) TrainSFT(
	ctx context.Context, m *art.Model, trajectories []*art.Trajectory, cfg *art.SFTConfig,
) (*art.TrainResult, error) {
	const op = "train SFT"
	c := cfg.WithDefaults()
	d := (*art.SFTConfig)(nil).WithDefaults()
	if c.Epochs != 1 || c.Warmup != 0 || *c.Decay != 1 || c.Schedule != d.Schedule || c.Part != d.Part ||
		c.MaxGradNorm != d.MaxGradNorm || c.WeightDecay != 0 || c.Seed != 0 || len(c.Validation) > 0 {
		return nil, &art.Error{
			Op: op, Hint: "leave them out of SFTConfig; repeat the call for more epochs",
			Err: fmt.Errorf("%w: Epochs, Warmup, Decay, Schedule, Part, MaxGradNorm, WeightDecay, Seed or Validation",
				art.ErrUnsupported),
		}
	}
	data, err := dataset(trajectories)
	if err != nil {
		return nil, &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	body := func(e *entry) (any, error) { // it stores the data set
		var id [6]byte
		_, _ = rand.Read(id[:]) // never fails
		at, err := b.opts.PutDataset(ctx, e.model.Project, fmt.Sprintf("%s-sft-data-%x", e.model.Name, id), data)
		if err != nil {
			return nil, err
		}
		rate, err := json.Marshal(c.LearningRate)
		return &wandbwire.CreateSFTJob{ModelID: e.model.ID, DataURL: at, Config: &wandbwire.SFTTrain{
			BatchSize: &c.BatchSize, LearningRate: rate, AssistantTurns: string(c.Turns),
		}}, err
	}
	return b.train(ctx, m, &training{op: op, path: "preview/sft-training-jobs", body: body, tell: c.Progress})
}

// dataset writes conversations as lines of JSON.
func dataset(trajectories []*art.Trajectory) ([]byte, error) {
	var out bytes.Buffer
	for _, t := range trajectories {
		if t == nil {
			continue
		}
		for _, h := range t.Histories() {
			line := map[string]any{"messages": h.Messages}
			if len(h.Tools) > 0 {
				line["tools"] = h.Tools
			}
			data, err := json.Marshal(line)
			if err != nil {
				return nil, err
			}
			out.Write(append(data, '\n'))
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("there are no conversations")
	}
	return out.Bytes(), nil
}

// putDataset stores a data set at the service, by a route of `art serve`.
func (b *Backend) putDataset(ctx context.Context, project, name string, jsonl []byte) (string, error) {
	var out struct{ URL string }
	path := "preview/artifacts/" + url.PathEscape(project) + "/" + url.PathEscape(name)
	err := b.do(ctx, &call{method: http.MethodPut, path: path, body: jsonl, out: &out, once: true})
	var e *statusError
	if errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed) {
		return "", &art.Error{
			Op: "store data set", Err: fmt.Errorf("%w: the service stores no data sets", art.ErrUnsupported),
			Hint: "set Options.PutDataset: W&B's own service reads artifacts that W&B's SDK has uploaded",
		}
	}
	return out.URL, err
}

// training is a call of Train or TrainSFT.
type training struct {
	op, path string
	body     func(e *entry) (any, error)
	groups   []*art.TrajectoryGroup
	tell     func(art.TrainProgress)
}

// train sends a training, and waits for its step.
func (b *Backend) train(ctx context.Context, m *art.Model, t *training) (*art.TrainResult, error) {
	e, err := b.models.Get(t.op, m)
	if err == nil && e.base != "" {
		err = &art.Error{Op: t.op, Err: art.ErrFrozen}
	}
	if err != nil {
		return nil, err
	}
	e.training.Lock()
	defer e.training.Unlock()
	if err := b.settle(ctx, e); err != nil {
		return nil, err
	}
	body, err := t.body(e)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var job wandbwire.Job
	if err := b.do(ctx, &call{method: http.MethodPost, path: t.path, body: body, out: &job, once: true}); err != nil {
		return nil, err
	}
	e.pending = job.ID
	metrics, err := b.await(ctx, e, t)
	if err != nil {
		return nil, err
	}
	metrics["time/wait_s"] = time.Since(began).Seconds()
	at, _, err := b.newest(ctx, e)
	if err != nil {
		return nil, err
	}
	if at < e.run.Next() {
		return nil, &art.Error{Op: t.op, Hint: "the model is as it was before; see what the service says of the training",
			Err: fmt.Errorf("%w: the training ended and made no step", ErrService)}
	}
	row := art.Metrics(t.groups...)
	maps.Copy(row, metrics)
	if err := e.note(at - 1); err != nil {
		return nil, err
	}
	if err := e.run.CommitUpdate(at, runs.Update{Groups: runs.Present(t.groups), Metrics: row}, e.write(at)); err != nil {
		return nil, err
	}
	e.step.Store(int64(at))
	return &art.TrainResult{Step: at, Metrics: metrics}, nil
}

// settle waits for a training that another call has not waited for, and notes what became of it.
func (b *Backend) settle(ctx context.Context, e *entry) error {
	if e.pending != "" {
		b.opts.Logger.Warn("a training that was interrupted is waited for", "job", e.pending)
		if _, err := b.await(ctx, e, &training{op: "train"}); e.pending != "" {
			return err
		}
	}
	_, err := b.sync(ctx, e)
	return err
}

// await polls the events of the pending training until it has ended, and returns the means of the metrics of its steps.
func (b *Backend) await(ctx context.Context, e *entry, t *training) (map[string]float64, error) {
	seen, after := progress{sum: map[string]float64{}, count: map[string]float64{}}, ""
	for {
		var page wandbwire.Page[wandbwire.Event]
		path := "preview/training-jobs/" + url.PathEscape(e.pending) + "/events"
		if after != "" {
			path += "?after=" + url.QueryEscape(after)
		}
		if err := b.do(ctx, &call{method: http.MethodGet, path: path, out: &page}); err != nil {
			if s := (*statusError)(nil); errors.As(err, &s) && !retried(err) {
				e.pending = "" // the service has forgotten it
			}
			return nil, err
		}
		for _, event := range page.Data {
			after = event.ID
			if seen.add(t, &event) {
				e.pending = ""
				return seen.means(), b.hide(seen.failed)
			}
		}
		if page.HasMore && len(page.Data) > 0 {
			continue
		}
		select {
		case <-time.After(b.opts.PollTime):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-b.life.Done():
			return nil, &art.Error{Op: t.op, Err: art.ErrClosed, Hint: "the training goes on at the service"}
		}
	}
}

// progress is what the events of a training tell.
type progress struct {
	done, total int
	sum, count  map[string]float64 // of the metrics of gradient steps
	failed      error
}

// add adds an event, and reports whether it is the last.
func (p *progress) add(t *training, event *wandbwire.Event) (last bool) {
	switch event.Type {
	case wandbwire.EventStarted:
		n, _ := event.Data["num_sequences"].(float64)
		p.total = int(n)
	case wandbwire.EventStep:
		p.done++
		for key, x := range event.Data {
			if x, ok := x.(float64); ok {
				p.sum[key], p.count[key] = p.sum[key]+x, p.count[key]+1
			}
		}
		if t.tell != nil {
			t.tell(art.TrainProgress{Done: p.done, Total: max(p.total, p.done), Metrics: p.means()})
		}
	case wandbwire.EventEnded:
		return true
	case wandbwire.EventFailed:
		err := fmt.Errorf("%w: the training failed: %v", ErrService, event.Data["error_message"])
		p.failed = &art.Error{Op: t.op, Err: err, Hint: "the model is as it was before"}
		return true
	}
	return false
}

// means are those of the metrics over the gradient steps.
func (p *progress) means() map[string]float64 {
	out := make(map[string]float64, len(p.sum))
	for key, x := range p.sum {
		out[key] = x / p.count[key]
	}
	return out
}
