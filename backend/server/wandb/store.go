package wandb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art/backend/server/access"
)

// store keeps documents in a folder: models/ID.json, jobs/ID.json with the request in jobs/ID.body, and data sets in
// artifacts/ENTITY/PROJECT/NAME/train.jsonl.
type store struct{ dir string }

func (s store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// write replaces a file as a whole.
func (s store) write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// writeJSON replaces a document as a whole.
func (s store) writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return s.write(path, data)
}

// readAll reads all documents of a kind.
func readAll[T any](s store, kind string) (list []*T, err error) {
	entries, err := os.ReadDir(s.path(kind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := os.ReadFile(s.path(kind, e.Name()))
		if err != nil {
			return nil, err
		}
		v := new(T)
		if err := json.Unmarshal(data, v); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path(kind, e.Name()), err)
		}
		list = append(list, v)
	}
	return list, nil
}

// storeUsage writes down what was used.
func (s *Server) storeUsage() error {
	return s.store.writeJSON(s.store.path("usage.json"), s.users.Usage())
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

// restoreUsage reads it.
func (s *Server) restoreUsage() error {
	data, err := os.ReadFile(s.store.path("usage.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	used := map[string]access.Report{}
	if err == nil {
		err = json.Unmarshal(data, &used)
	}
	s.users.Restore(used)
	return err
}

// restore reads what is stored, and queues trainings that have not ended.
func (s *Server) restore() error {
	if err := s.restoreUsage(); err != nil {
		return err
	}
	models, err := readAll[modelRecord](s.store, "models")
	if err != nil {
		return err
	}
	for _, rec := range models {
		s.models[rec.ID] = &model{record: *rec}
	}
	jobs, err := readAll[jobRecord](s.store, "jobs")
	if err != nil {
		return err
	}
	for _, rec := range jobs {
		j := &job{record: *rec, model: s.models[rec.Model]}
		switch {
		case j.model == nil || j.old():
			err = errors.Join(err, s.forget(j))
			continue
		case !j.ended():
			s.queue = append(s.queue, j)
		}
		s.jobs[rec.ID] = j
	}
	sortJobs(s.queue)
	return err
}
