package wandb

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/goart-dev/art/backend/server/internal/jsoncount"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
)

// Limits bound a tenant. 0 is the default.
type Limits struct {
	Jobs         int // trainings that have not ended (status 429). Default 16
	Models       int // that are not deleted (status 403). Default 64
	Trajectories int // of one request, and lines of a data set. Default 65,536
	Messages     int // of one request or data set. Default 262,144

	// QueuedBytes bounds the requests of all trainings that have not ended (status 429). Default 256 MiB.
	QueuedBytes int64
	// StoredBytes bounds data sets and, with Options.Size, the runs of models. Default 20 GiB; more is refused (status
	// 403) until some are deleted.
	StoredBytes int64
}

// fill returns the limits, with those of the server, or the defaults, where there is none.
func (l Limits) fill(of Limits) Limits {
	return Limits{
		Jobs: cmp.Or(l.Jobs, of.Jobs, 16), Models: cmp.Or(l.Models, of.Models, 64),
		Trajectories: cmp.Or(l.Trajectories, of.Trajectories, 1<<16), Messages: cmp.Or(l.Messages, of.Messages, 1<<18),
		QueuedBytes: cmp.Or(l.QueuedBytes, of.QueuedBytes, 256<<20),
		StoredBytes: cmp.Or(l.StoredBytes, of.StoredBytes, 20<<30),
	}
}

// tenant is what is counted of a tenant.
type tenant struct {
	limits Limits
	queued *tenancy.Budget // requests of trainings that have not ended
	stored *tenancy.Budget // data sets, and runs of models
}

func newTenant(of *Tenant, limits Limits) *tenant {
	limits = cmp.Or(of.Limits, &Limits{}).fill(limits)
	return &tenant{limits, tenancy.NewBudget(limits.QueuedBytes), tenancy.NewBudget(limits.StoredBytes)}
}

// Held is what a tenant holds now.
type Held struct {
	Jobs        int   `json:"jobs"`   // that have not ended
	Models      int   `json:"models"` // that are not deleted
	QueuedBytes int64 `json:"queued_bytes"`
	StoredBytes int64 `json:"stored_bytes"`
}

// Held returns what each tenant holds, by name. [Limits] bounds it.
func (s *Server) Held() map[string]Held {
	all := map[string]Held{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.tenants {
		all[name] = Held{
			Jobs: s.unended(name), Models: s.undeleted(name), QueuedBytes: t.queued.Held(), StoredBytes: t.stored.Held(),
		}
	}
	return all
}

// maxSmall bounds the bodies of requests without data, in bytes.
const maxSmall = 1 << 20

// What no client sends more of, whatever the limits of its tenant are.
const (
	maxTokens = 1 << 20 // that have logprobs, of all choices
	maxValues = 1 << 18 // in metadata, metrics and logs, and elements of lists that have no limit of their own
	maxIDs    = 1 << 24 // of tokens: they take hardly more memory than in the body

	maxMembers = 1 << 21 // of messages and whatever else keeps unknown members
)

// counts are those of the bodies that have trajectories, before they are decoded.
func (l *Limits) counts() *jsoncount.Limits {
	return &jsoncount.Limits{
		Lists: map[string]int{
			"trajectory_groups": l.Trajectories, "trajectories": l.Trajectories, "additional_histories": l.Trajectories,
			"exceptions": l.Trajectories, "messages_and_choices": l.Messages, "messages": l.Messages, "choices": l.Messages,
			"chat_completions": l.Messages, "completions": l.Messages, "responses": l.Messages,
			"logprobs.content": maxTokens, "bytes": maxIDs, "top_logprobs": 20 * maxTokens, "token_ids": maxIDs,
			"prompt_ids": maxIDs, "ids": maxIDs, "sampled": maxIDs, "forced": maxIDs, "logprobs": maxIDs,
		},
		Trees: map[string]int{"metadata": maxValues, "metrics": maxValues, "logs": maxValues},
		Other: maxValues, Members: maxMembers, Plain: []string{"logprobs.content"},
	}
}

// checkCounts refuses a body that has too much of something.
func checkCounts(counts *jsoncount.Limits, body []byte) error {
	if err := counts.Check(body); err != nil {
		return failf(http.StatusBadRequest, "%v", err)
	}
	return nil
}

// retryAfter is when a client that was refused may try again, in seconds.
const retryAfter = 5

// mayStore is an error when a tenant has stored too much to store n bytes more; else they are counted.
func (t *tenant) mayStore(n int64) error {
	if t.stored.Take(n, 0) {
		return nil
	}
	return failf(http.StatusForbidden, "data sets and runs have %d bytes of %d: delete data sets (DELETE "+
		"%sartifacts/PROJECT/NAME) or checkpoints (DELETE %[3]smodels/ID/checkpoints), or ask the operator of the server "+
		"to delete runs of deleted models", t.stored.Held(), t.stored.Limit(), Prefix)
}

// countStored counts what is on disk.
func (s *Server) countStored() error {
	var all []error
	for name, t := range s.tenants {
		err := filepath.WalkDir(s.store.Path(kindArtifacts, name), func(_ string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err == nil {
				t.stored.Add(info.Size())
			}
			return err
		})
		if !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	for _, m := range s.models {
		all = append(all, s.measure(m))
	}
	return errors.Join(all...)
}

// measure counts what the run of a model takes now.
func (s *Server) measure(m *model) error {
	if s.opts.Size == nil {
		return nil
	}
	m.measuring.Lock()
	defer m.measuring.Unlock()
	n, err := s.opts.Size(s.project(m.record.Entity, m.record.Project), m.record.Run)
	if errors.Is(err, fs.ErrNotExist) {
		n, err = 0, nil
	}
	if err == nil {
		s.tenants[m.record.Entity].stored.Add(n - m.bytes)
		m.bytes = n
	}
	return err
}

// remeasure is measure after a run has changed.
func (s *Server) remeasure(m *model) {
	if err := s.measure(m); err != nil {
		s.log.Error("a run could not be measured", "model", m.record.ID, "error", err)
	}
}
