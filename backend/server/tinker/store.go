package tinker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// store keeps documents in a folder: sessions/ID.json, runs/NAME.json with runs/NAME.journal, usage.json.
type store struct {
	dir    string
	noSync bool
}

// sessionRecord is what is stored of a session.
type sessionRecord struct {
	ID, Tenant           string
	Key                  string // name of the one that created it; "" for one without limits
	Created              time.Time
	Tags                 []string
	Metadata             map[string]any
	DisplayName, Project string
	Runs                 []string
	Samplers             []samplerRecord
}

// samplerRecord says which weights a sampler has: those of a base when Run is "".
type samplerRecord struct {
	ID, Base string
	Project  string // of the run
	Run      string // training run
	Path     string // of the backend: "@STEP" of the run, or saved weights
	Tinker   string // the path that a client named, if it did
}

// runRecord is what is stored of a training run.
type runRecord struct {
	ID, Name, Tenant, Session string
	Key, Project              string // of the session
	Base                      string
	LoRA                      art.LoRA
	MLP, Attention            bool
	Seed                      uint64
	Created, LastRequest      time.Time
	Metadata                  map[string]any
	Corrupted                 string // why it cannot be continued
	Checkpoints               []checkpoint
}

// checkpoint is one entry of the index of saved weights.
type checkpoint struct {
	tinkerwire.Checkpoint
	Saved   string // the name that the backend knows, [art.SavedWeights].Name
	Weights string // the path that the backend returned; "" while it is being stored
	Seq     int    // of the request that stored it
}

func openStore(dir string, noSync bool) (*store, error) {
	for _, sub := range []string{"sessions", "runs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	return &store{dir, noSync}, nil
}

func (s *store) path(kind, name, ext string) string { return filepath.Join(s.dir, kind, name+ext) }

// write replaces a document as a whole.
func (s *store) write(kind, name string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	path := s.path(kind, name, ".json")
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil && !s.noSync {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (s *store) remove(kind, name string) error {
	err := os.Remove(s.path(kind, name, ".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// readAll reads all documents of a kind.
func readAll[T any](s *store, kind string) (list []*T, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, kind))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.dir, kind, e.Name()))
		if err != nil {
			return nil, err
		}
		v := new(T)
		if err := json.Unmarshal(data, v); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path(kind, e.Name(), ""), err)
		}
		list = append(list, v)
	}
	return list, nil
}

// usage reads what tenants have used.
func (s *store) usage() (map[string]access.Report, error) {
	all := map[string]access.Report{}
	data, err := os.ReadFile(s.path("", "usage", ".json"))
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	return all, err
}
