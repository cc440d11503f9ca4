package wandb

import (
	"errors"
	"time"

	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
)

// The kinds of documents: models/ID.json, jobs/ID.json with the request in jobs/ID.body, and data sets in
// artifacts/ENTITY/PROJECT/NAME/train.jsonl. usage.json is beside them.
const (
	kindModels    = "models"
	kindJobs      = "jobs"
	kindArtifacts = "artifacts"
	usageFile     = "usage.json"
)

// storeUsage writes down what was used.
func (s *Server) storeUsage() error {
	return s.store.WriteJSON(s.users.Usage(), usageFile)
}

// keepUsage writes it down again and again, until the server is closed.
func (s *Server) keepUsage() {
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.storeUsage(); err != nil {
				s.log.Error("usage could not be stored", "error", err)
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// openStore opens the folder, and reads what is stored.
func (s *Server) openStore() (err error) {
	if s.store, err = tenancy.OpenFolder(s.opts.Dir, s.log, s.opts.disk, kindModels, kindJobs); err != nil {
		return err
	}
	if err = s.restore(); err != nil {
		return errors.Join(err, s.store.Close())
	}
	return nil
}

// restore reads what is stored, and queues trainings that have not ended.
func (s *Server) restore() error {
	used := map[string]access.Report{}
	tenancy.ReadJSON(s.store, &used, usageFile)
	s.users.Restore(used)
	models, err := tenancy.ReadAll(s.store, kindModels, func(rec *modelRecord) string { return rec.ID })
	if err != nil {
		return err
	}
	for _, rec := range models {
		s.models[rec.ID] = &model{record: *rec}
		if s.tenants[rec.Entity] == nil { // it is not configured any more
			s.tenants[rec.Entity] = newTenant(&Tenant{}, s.opts.Limits)
		}
	}
	if err := s.countStored(); err != nil {
		return err
	}
	jobs, err := tenancy.ReadAll(s.store, kindJobs, func(rec *jobRecord) string { return rec.ID })
	if err != nil {
		return err
	}
	for _, rec := range jobs {
		j := &job{record: *rec, model: s.models[rec.Model]}
		switch {
		case j.old():
			err = errors.Join(err, s.forget(j))
			continue
		case j.model == nil: // its document was damaged, and may come back
			s.log.Error("training of a model that is not stored", "job", rec.ID, "model", rec.Model)
			continue
		case !j.ended():
			if err := s.recount(j); err != nil {
				return err
			}
			s.queue = append(s.queue, j)
		}
		s.jobs[rec.ID] = j
	}
	sortJobs(s.queue)
	return err
}
