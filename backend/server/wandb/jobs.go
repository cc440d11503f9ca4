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

func (j *job) ended() bool {
	n := len(j.record.Events)
	return n > 0 && slices.Contains([]string{wandbwire.EventEnded, wandbwire.EventFailed}, j.record.Events[n-1].Type)
}

// keepJobs is how long the events of a training can be read after a restart.
const keepJobs = 24 * time.Hour

// sortJobs sorts by age.
func sortJobs(jobs []*job) {
	slices.SortFunc(jobs, func(a, b *job) int { return a.record.Created.Compare(b.record.Created) })
}

// forget deletes what is stored of a training.
func (s *Server) forget(j *job) error {
	return errors.Join(s.store.Remove(kindJobs, j.record.ID+".json"), s.store.Remove(kindJobs, j.record.ID+".body"))
}

// createJob serves POST training-jobs.
func (s *Server) createJob(r *http.Request, by *tenancy.Caller) (any, error) {
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
		// The rate falls as groups come to agree.
		keeper, ok := s.backend.(driver.CheckpointKeeper)
		if !ok {
			return nil, nil, failf(http.StatusBadRequest,
				"scale_learning_rate_by_reward_std_dev needs the history, which %T does not keep", s.backend)
		}
		rows, err := keeper.History(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		cfg.LearningRate *= art.RewardStdMultiplier(rows)
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

// enqueue stores a training, and queues it.
func (s *Server) enqueue(m *model, body []byte, by *tenancy.Caller, sft bool) (any, error) {
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
		s.mu.Lock()
		delete(s.jobs, j.record.ID)
		s.tenants[m.record.Entity].queued.Add(-j.cost)
		s.mu.Unlock()
		return nil, errors.Join(err, s.forget(j))
	}
	s.mu.Lock()
	s.queue = append(s.queue, j)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	s.forgetOld(m.record.Entity)
	return wandbwire.Job{ID: j.record.ID}, nil
}

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
	// Trainings end, and clients repeat the request.
	busy := wire.Error{Status: http.StatusTooManyRequests, Type: wire.TypeInvalid, RetryAfter: retryAfter}
	if n := s.unended(entity); n >= t.limits.Jobs {
		busy.Message = fmt.Sprintf("%d trainings have not ended; wait for one of them", n)
		return &busy
	}
	if !t.queued.Take(j.cost, 0) {
		busy.Message = "the requests of trainings that have not ended have too many bytes; send this one when some have ended"
		return &busy
	}
	s.jobs[j.record.ID] = j
	return nil
}

// keptJobs is how many trainings of a tenant that have ended are remembered.
const keptJobs = 256

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
func (s *Server) listEvents(r *http.Request, by *tenancy.Caller) (any, error) {
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
	s.users.Charge(j.model.record.Entity, j.record.Key, access.Usage{ // tokens only of one that has succeeded
		TrainedTokens: int64(result["data/tokens_trained"]), Seconds: time.Since(began).Seconds(),
	})
	if err := s.storeUsage(); err != nil {
		s.log.Error("usage could not be stored", "job", j.record.ID, "error", err)
	}
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
		s.emit(j, wandbwire.EventStarted, map[string]any{"num_sequences": 1})
		s.emitStep(j, result)
		s.emit(j, wandbwire.EventEnded, nil)
	}
	if err := s.store.Remove(kindJobs, j.record.ID+".body"); err != nil {
		s.log.Warn("request of a training could not be deleted", "job", j.record.ID, "error", err)
	}
	s.remeasure(j.model)
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
		// The step was stored before a restart.
		var rows []art.HistoryRow
		if keeper, ok := s.backend.(driver.CheckpointKeeper); ok {
			if rows, err = keeper.History(s.ctx, own); err != nil {
				return nil, err
			}
		}
		for _, row := range rows {
			if row.Split == "train" && row.Step == *from {
				return row.Metrics, nil
			}
		}
		return map[string]float64{}, nil
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
	if p.Done > 0 && p.Done < p.Total {
		s.emitStep(j, p.Metrics)
	}
}

// emitStep tells of the metrics of a gradient step.
func (s *Server) emitStep(j *job, metrics map[string]float64) {
	data := map[string]any{}
	for key, x := range wandbwire.Finite(metrics) {
		data[key] = x
	}
	s.emit(j, wandbwire.EventStep, data)
}
