package wandb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/wandbwire"
)

// createSFTJob serves POST sft-training-jobs.
func (s *Server) createSFTJob(r *http.Request, by *tenancy.Caller) (any, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxSmall)
	body, err := readAllBody(r)
	if err != nil {
		return nil, err
	}
	var req wandbwire.CreateSFTJob
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	m, err := s.byID(req.ModelID, by)
	if err != nil {
		return nil, err
	}
	if _, ok := s.backend.(driver.SFTTrainer); !ok {
		return nil, failf(http.StatusNotImplemented, "%T has no supervised training", s.backend)
	}
	// Refuse data sets of projects that the key does not cover. Other names are refused where they are read.
	if parts := strings.Split(strings.TrimPrefix(req.DataURL, wandbwire.ArtifactScheme), "/"); len(parts) == 3 {
		if err := by.ReachesProject(parts[1]); err != nil {
			return nil, err
		}
	}
	if _, _, err := s.dataset(&req, m); err != nil {
		return nil, err
	}
	if _, err := s.open(r.Context(), m); err != nil {
		return nil, err
	}
	return s.enqueue(m, body, by, true)
}

func (s *Server) supervise(own *art.Model, body []byte, progress func(art.TrainProgress)) (map[string]float64, error) {
	var req wandbwire.CreateSFTJob
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	s.mu.Lock()
	m := s.models[req.ModelID]
	s.mu.Unlock()
	data, cfg, err := s.dataset(&req, m)
	if err != nil {
		return nil, err
	}
	cfg.Progress = progress
	result, err := own.TrainSFT(s.ctx, data, cfg)
	if err != nil {
		return nil, err
	}
	return result.Metrics, nil
}

// artifactFile is the file of a data set that putArtifact has stored.
func artifactFile(entity, project, name string) ([]string, error) {
	if err := checkNames(project, name); err != nil {
		return nil, err
	}
	return []string{kindArtifacts, entity, project, name, "train.jsonl"}, nil
}

// putArtifact serves PUT artifacts/PROJECT/NAME. It is our own: W&B stores artifacts with another service.
func (s *Server) putArtifact(r *http.Request, by *tenancy.Caller) (any, error) {
	project, name := r.PathValue("project"), r.PathValue("artifact")
	if err := by.ReachesProject(project); err != nil {
		return nil, err
	}
	file, err := artifactFile(by.Tenant, project, name)
	if err != nil {
		return nil, err
	}
	body, err := readAllBody(r)
	if err != nil {
		return nil, err
	}
	t := s.tenants[by.Tenant]
	if _, err := conversations(body, &t.limits); err != nil {
		return nil, err
	}
	defer s.putting.Lock(by.Tenant)()
	if _, err := os.Stat(s.store.Path(file...)); err == nil {
		return nil, failf(http.StatusConflict, "the artifact %s/%s exists; choose another name", project, name)
	}
	if err := t.mayStore(int64(len(body))); err != nil {
		return nil, err
	}
	if err := s.store.Write(body, file...); err != nil {
		t.stored.Add(-int64(len(body)))
		return nil, err
	}
	return map[string]string{"url": wandbwire.ArtifactScheme + by.Tenant + "/" + project + "/" + name + ":v0"}, nil
}

// deleteArtifact serves DELETE artifacts/PROJECT/NAME. Trainings that read the data set fail.
func (s *Server) deleteArtifact(r *http.Request, by *tenancy.Caller) (any, error) {
	project, name := r.PathValue("project"), r.PathValue("artifact")
	if err := by.ReachesProject(project); err != nil {
		return nil, err
	}
	file, err := artifactFile(by.Tenant, project, name)
	if err != nil {
		return nil, err
	}
	defer s.putting.Lock(by.Tenant)()
	info, err := os.Stat(s.store.Path(file...))
	if errors.Is(err, os.ErrNotExist) {
		return nil, failf(http.StatusNotFound, "there is no artifact %.80q in the project %.80q", name, project)
	}
	if err == nil {
		err = s.store.Remove(file[:len(file)-1]...)
	}
	if err == nil {
		s.tenants[by.Tenant].stored.Add(-info.Size())
	}
	return struct{}{}, err
}

// dataset reads the data set and the options of a request.
func (s *Server) dataset(req *wandbwire.CreateSFTJob, m *model) ([]*art.Trajectory, *art.SFTConfig, error) {
	cfg, err := supervisedConfig(req.Config)
	if err != nil {
		return nil, nil, failf(http.StatusBadRequest, "config: %v", err)
	}
	name, ok := strings.CutPrefix(req.DataURL, wandbwire.ArtifactScheme)
	parts := strings.Split(strings.TrimSuffix(name, ":v0"), "/")
	if !ok || len(parts) != 3 || parts[0] != m.record.Entity {
		return nil, nil, failf(http.StatusBadRequest,
			"training_data_url is %.200q, want wandb-artifact:///%s/PROJECT/NAME:v0", req.DataURL, m.record.Entity)
	}
	file, err := artifactFile(parts[0], parts[1], parts[2])
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(s.store.Path(file...))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, failf(http.StatusNotFound, "the artifact %.200q is not stored here, and artifacts of W&B's own "+
			"service cannot be read: PUT its train.jsonl to %sartifacts/%s/%s", req.DataURL, Prefix, parts[1], parts[2])
	}
	if err != nil {
		return nil, nil, err
	}
	list, err := conversations(data, &s.tenants[m.record.Entity].limits)
	return list, cfg, err
}

// conversations reads lines of {"messages", "tools"}.
func conversations(data []byte, limits *Limits) (list []*art.Trajectory, err error) {
	if err := checkCounts(limits.counts(), data); err != nil {
		return nil, err
	}
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if len(list) == limits.Trajectories {
			return nil, failf(http.StatusBadRequest, "the data has more than %d lines; make several data sets of it", len(list))
		}
		var line struct {
			Messages []art.Message `json:"messages"`
			Tools    []art.Tool    `json:"tools"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, failf(http.StatusBadRequest, "line %d of the data: %v", n, err)
		}
		list = append(list, &art.Trajectory{History: art.History{Messages: line.Messages, Tools: line.Tools}})
	}
	if len(list) == 0 {
		return nil, failf(http.StatusBadRequest, "the data is empty")
	}
	return list, nil
}

// supervisedConfig converts the options of supervised training.
func supervisedConfig(c *wandbwire.SFTTrain) (cfg *art.SFTConfig, err error) {
	cfg = &art.SFTConfig{BatchSize: 2, LearningRate: new(art.SFTConfig).WithDefaults().LearningRate} // ART's defaults
	if c == nil {
		return cfg, nil
	}
	cfg.Turns = art.Turns(c.AssistantTurns)
	if c.BatchSize != nil {
		cfg.BatchSize = *c.BatchSize
	}
	rate, err := learningRate(c.LearningRate)
	if err != nil {
		return nil, err
	}
	cfg.LearningRate = cmp.Or(rate, cfg.LearningRate)
	if c.MetricLogging != nil && c.MetricLogging.Enabled {
		return nil, errors.New("metric_logging is not supported; metrics are in the events, and in the run directory")
	}
	return cfg, cfg.Validate()
}

// learningRate reads a rate, or a list of equal ones.
func learningRate(raw json.RawMessage) (float64, error) {
	if raw == nil || string(raw) == "null" {
		return 0, nil
	}
	var one float64
	if json.Unmarshal(raw, &one) == nil {
		return one, nil
	}
	var list []float64
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return 0, errors.New("learning_rate is neither a number nor a list of numbers")
	}
	if slices.Min(list) != slices.Max(list) {
		return 0, errors.New("a learning_rate that changes from batch to batch is not supported; send one number")
	}
	return list[0], nil
}
