package wandb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/wandbwire"
	"github.com/goart-dev/art/internal/wire"
)

// jobRecord is what is stored of a training, beside its request.
type jobRecord struct {
	ID, Model string
	Key       string // name of the one that pays; "" for one without limits
	SFT       bool
	Created   time.Time
	From      *int // the step that it began with; nil before it began
	Attempts  int  // how often it was begun, and has not ended
	Events    []wandbwire.Event
}

// job is a training. record is guarded by the server's mu.
type job struct {
	record  jobRecord
	model   *model
	cost    int64      // bytes of its tenant's queue
	storing sync.Mutex // held while its document is written
}

// ended reports whether a training has ended.
func (j *job) ended() bool {
	n := len(j.record.Events)
	return n > 0 && slices.Contains([]string{wandbwire.EventEnded, wandbwire.EventFailed}, j.record.Events[n-1].Type)
}

// keepJobs is how long the events of a training can be read after a restart.
const keepJobs = 24 * time.Hour

// old reports whether nobody waits for a training any more.
func (j *job) old() bool { return j.ended() && time.Since(j.record.Created) > keepJobs }

// sortJobs sorts by age.
func sortJobs(jobs []*job) {
	slices.SortFunc(jobs, func(a, b *job) int { return a.record.Created.Compare(b.record.Created) })
}

// forget deletes what is stored of a training.
func (s *Server) forget(j *job) error {
	var all []error
	for _, ext := range []string{".json", ".body"} {
		all = append(all, s.store.Remove(kindJobs, j.record.ID+ext))
	}
	return errors.Join(all...)
}

// createJob serves POST training-jobs.
func (s *Server) createJob(r *http.Request, by *access.Caller) (any, error) {
	body, err := readAllBody(r)
	if err != nil {
		return nil, err
	}
	if err := checkCounts(s.tenants[by.Tenant].limits.counts(), body); err != nil {
		return nil, err
	}
	var req wandbwire.CreateJob
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	m, err := s.byID(req.ModelID, by)
	if err != nil {
		return nil, err
	}
	own, err := s.open(r.Context(), m)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.training(r.Context(), own, &req); err != nil {
		return nil, err
	}
	return s.enqueue(m, body, by, false)
}

// training converts the request of a training.
func (s *Server) training(
	ctx context.Context, m *art.Model, req *wandbwire.CreateJob,
) ([]*art.TrajectoryGroup, *art.TrainConfig, error) {
	cfg, err := req.Config.TrainConfig()
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, nil, failf(http.StatusBadRequest, "experimental_config: %v", err)
	}
	cfg.LearningRate = cfg.WithDefaults().LearningRate // ART's, which clients of this protocol expect
	if req.Config != nil && req.Config.ScaleByStd != nil && *req.Config.ScaleByStd {
		if err := s.scaleRate(ctx, m, cfg); err != nil {
			return nil, nil, err
		}
	}
	groups, err := wandbwire.Decode(req.Groups, m.Step(), s.tokenizer(ctx, m))
	if err == nil && len(groups) == 0 {
		err = errors.New("trajectory_groups is empty")
	}
	if err != nil {
		return nil, nil, failf(http.StatusBadRequest, "%s", tenancy.Public(err))
	}
	return groups, cfg, nil
}

// scaleRate lowers the learning rate as groups come to agree.
func (s *Server) scaleRate(ctx context.Context, m *art.Model, cfg *art.TrainConfig) error {
	keeper, ok := s.backend.(driver.CheckpointKeeper)
	if !ok {
		return failf(http.StatusBadRequest, "scale_learning_rate_by_reward_std_dev needs the history, which %T does not keep",
			s.backend)
	}
	rows, err := keeper.History(ctx, m)
	if err == nil {
		cfg.LearningRate *= art.RewardStdMultiplier(rows)
	}
	return err
}

// enqueue stores a training, and queues it.
func (s *Server) enqueue(m *model, body []byte, by *access.Caller, sft bool) (any, error) {
	j := &job{model: m, cost: int64(len(body)), record: jobRecord{
		ID: "job-" + strings.ToLower(rand.Text()), Model: m.record.ID, Key: by.Key(), SFT: sft, Created: time.Now(),
	}}
	if err := s.admit(j); err != nil {
		return nil, err
	}
	err := s.store.Write(body, kindJobs, j.record.ID+".body")
	if err == nil {
		err = s.storeJob(j)
	}
	if err != nil {
		s.drop(j)
		return nil, errors.Join(err, s.forget(j))
	}
	s.mu.Lock()
	s.queue = append(s.queue, j)
	s.mu.Unlock()
	s.signal()
	s.forgetOld(m.record.Entity)
	return wandbwire.Job{ID: j.record.ID}, nil
}

// admit counts a training, unless its tenant has too many.
func (s *Server) admit(j *job) error {
	entity := j.model.record.Entity
	t := s.tenants[entity]
	if j.cost > t.limits.QueuedBytes {
		return failf(http.StatusRequestEntityTooLarge, "the body has %d bytes, want at most %d; send fewer trajectories",
			j.cost, t.limits.QueuedBytes)
	}
	if err := t.mayStore(0); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.unended(entity); n >= t.limits.Jobs {
		return &wire.Error{
			Status: http.StatusTooManyRequests, Type: wire.TypeInvalid, RetryAfter: retryAfter,
			Message: fmt.Sprintf("%d trainings have not ended; wait for one of them", n),
		}
	}
	if !t.queued.Take(j.cost, 0) {
		return t.full()
	}
	s.jobs[j.record.ID] = j
	return nil
}

// drop takes back admit.
func (s *Server) drop(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.jobs, j.record.ID)
	s.tenants[j.model.record.Entity].queued.Add(-j.cost)
}

// recount counts a training from before a restart.
func (s *Server) recount(j *job) error {
	info, err := os.Stat(s.store.Path(kindJobs, j.record.ID+".body"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // the training says so
	}
	if err == nil {
		j.cost = info.Size()
		s.tenants[j.model.record.Entity].queued.Add(j.cost)
	}
	return err
}

// keptJobs is how many trainings of a tenant that have ended are remembered.
const keptJobs = 256

// forgetOld forgets the oldest trainings of a tenant that has many.
func (s *Server) forgetOld(entity string) {
	var ended []*job
	s.mu.Lock()
	for _, j := range s.jobs {
		if j.model.record.Entity == entity && j.ended() {
			ended = append(ended, j)
		}
	}
	sortJobs(ended)
	ended = ended[:max(0, len(ended)-keptJobs)]
	for _, j := range ended {
		delete(s.jobs, j.record.ID)
	}
	s.mu.Unlock()
	for _, j := range ended {
		if err := s.forget(j); err != nil {
			s.log.Warn("a training that has ended could not be deleted", "job", j.record.ID, "error", err)
		}
	}
}

// unended counts the trainings of an entity that have not ended. mu is held.
func (s *Server) unended(entity string) (n int) {
	for _, j := range s.jobs {
		if j.model.record.Entity == entity && !j.ended() {
			n++
		}
	}
	return n
}

// storeJob writes the record of a training as it is now. mu, for which all tenants wait, is not held meanwhile.
func (s *Server) storeJob(j *job) error {
	j.storing.Lock()
	defer j.storing.Unlock()
	s.mu.Lock()
	record := j.record
	s.mu.Unlock()
	return s.store.WriteJSON(&record, kindJobs, record.ID+".json")
}

// signal wakes the goroutine that trains.
func (s *Server) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// emit adds an event, and stores it.
func (s *Server) emit(j *job, kind string, data map[string]any) {
	if s.addEvent(j, kind, data) {
		if err := s.storeJob(j); err != nil {
			s.log.Error("event could not be stored", "job", j.record.ID, "error", err)
		}
	}
}

// addEvent is emit without the job's document. It reports whether there is a new event.
func (s *Server) addEvent(j *job, kind string, data map[string]any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == wandbwire.EventStarted && len(j.record.Events) > 0 {
		return false // before a restart
	}
	if data == nil {
		data = map[string]any{}
	}
	id := fmt.Sprintf("%s-%d", j.record.ID, len(j.record.Events))
	j.record.Events = append(j.record.Events, wandbwire.Event{ID: id, Type: kind, Data: data})
	if j.ended() {
		s.tenants[j.model.record.Entity].queued.Add(-j.cost)
		j.cost = 0
	}
	return true
}

// listEvents serves GET training-jobs/ID/events.
func (s *Server) listEvents(r *http.Request, by *access.Caller) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[r.PathValue("id")]
	if j == nil || j.model.record.Entity != by.Tenant {
		return nil, failf(http.StatusNotFound, "there is no training with the id %.80q", r.PathValue("id"))
	}
	if err := by.Reaches(j.model.record.Project, j.model.run()); err != nil {
		return nil, err
	}
	return page(r, j.record.Events, func(e wandbwire.Event) string { return e.ID })
}

// train executes trainings, one at a time, until the server is closed.
func (s *Server) train() {
	for {
		j := s.next()
		if j != nil {
			_ = tenancy.Recovered(s.log, "a training", func() error { s.run(j); return nil }) // the panic is in the log
			continue
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return
		}
	}
}

// next takes a training from the queue: the oldest of another tenant than that of the last, so that none waits for all
// of another's. It is nil when there is none or the server is closed.
func (s *Server) next() *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || len(s.queue) == 0 {
		return nil
	}
	at := max(slices.IndexFunc(s.queue, func(j *job) bool { return j.model.record.Entity != s.served }), 0)
	j := s.queue[at]
	s.queue = slices.Delete(s.queue, at, at+1)
	s.served = j.model.record.Entity
	return j
}

// run executes a training, unless its step was stored before a restart.
func (s *Server) run(j *job) {
	began := time.Now()
	result, err := s.attempt(j)
	s.charge(j, time.Since(began), result)
	switch {
	case s.ctx.Err() != nil && err != nil:
		if err := s.count(j, -1); err != nil {
			s.log.Warn("attempt could not be stored", "job", j.record.ID, "error", err)
		}
		return // the next server goes on
	case err != nil:
		s.log.Warn("training failed", "job", j.record.ID, "error", err)
		s.emit(j, wandbwire.EventFailed, map[string]any{"error_message": tenancy.Public(err)})
	default:
		s.finish(j, result)
	}
	if err := s.store.Remove(kindJobs, j.record.ID+".body"); err != nil {
		s.log.Warn("request of a training could not be deleted", "job", j.record.ID, "error", err)
	}
	s.remeasure(j.model)
}

// charge adds a training to what its key has used. Metrics are those of a training that has succeeded.
func (s *Server) charge(j *job, took time.Duration, metrics map[string]float64) {
	s.users.Charge(j.model.record.Entity, j.record.Key, access.Usage{
		TrainedTokens: int64(metrics["data/tokens_trained"]), Seconds: took.Seconds(),
	})
	if err := s.storeUsage(); err != nil {
		s.log.Error("usage could not be stored", "job", j.record.ID, "error", err)
	}
}

// finish tells of the last gradient step, and of the end.
func (s *Server) finish(j *job, metrics map[string]float64) {
	s.emit(j, wandbwire.EventStarted, map[string]any{"num_sequences": 1})
	data := map[string]any{}
	for key, x := range finite(metrics) {
		data[key] = x
	}
	s.emit(j, wandbwire.EventStep, data)
	s.emit(j, wandbwire.EventEnded, nil)
}

// attempt executes a training, unless it was begun too often: it may be what ends the process. A panic is an error.
func (s *Server) attempt(j *job) (result map[string]float64, err error) {
	if j.record.Attempts >= tenancy.MaxAttempts {
		return nil, tenancy.ErrAttempts
	}
	if err := s.count(j, 1); err != nil {
		return nil, err
	}
	err = tenancy.Recovered(s.log, "a training", func() (err error) {
		result, err = s.execute(j)
		return err
	})
	return result, err
}

// count stores how often a training was begun.
func (s *Server) count(j *job, more int) error {
	s.mu.Lock()
	j.record.Attempts += more
	s.mu.Unlock()
	return s.storeJob(j)
}

// execute makes the step of a training, and returns its metrics.
func (s *Server) execute(j *job) (map[string]float64, error) {
	own, err := s.open(s.ctx, j.model)
	if err != nil {
		return nil, err
	}
	if from := j.record.From; from != nil && own.Step() > *from {
		return s.stored(own, *from)
	}
	body, err := os.ReadFile(s.store.Path(kindJobs, j.record.ID+".body"))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	j.record.From = new(own.Step())
	s.mu.Unlock()
	if err := s.storeJob(j); err != nil {
		return nil, err
	}
	progress := func(p art.TrainProgress) { s.progress(j, p) }
	if j.record.SFT {
		return s.supervise(own, body, progress)
	}
	return s.reinforce(own, body, progress)
}

// reinforce executes a training on groups.
func (s *Server) reinforce(own *art.Model, body []byte, progress func(art.TrainProgress)) (map[string]float64, error) {
	var req wandbwire.CreateJob
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	groups, cfg, err := s.training(s.ctx, own, &req)
	if err != nil {
		return nil, err
	}
	cfg.Progress = progress
	result, err := own.Train(s.ctx, groups, cfg)
	if err != nil {
		return nil, err
	}
	return result.Metrics, nil
}

// progress tells of the gradient steps before the last, whose metrics are those of the stored step.
func (s *Server) progress(j *job, p art.TrainProgress) {
	s.emit(j, wandbwire.EventStarted, map[string]any{"num_sequences": p.Total})
	if p.Done == 0 || p.Done >= p.Total {
		return
	}
	data := map[string]any{}
	for key, x := range finite(p.Metrics) {
		data[key] = x
	}
	s.emit(j, wandbwire.EventStep, data)
}

// stored returns the metrics of a step that was stored before a restart.
func (s *Server) stored(m *art.Model, from int) (map[string]float64, error) {
	keeper, ok := s.backend.(driver.CheckpointKeeper)
	if !ok {
		return map[string]float64{}, nil
	}
	rows, err := keeper.History(s.ctx, m)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Split == "train" && row.Step == from {
			return row.Metrics, nil
		}
	}
	return map[string]float64{}, nil
}
