package tinker

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// tenant is a user of the server.
type tenant struct {
	name   string
	limits Limits

	queued *tenancy.Budget // bodies of futures without a result
	stored *tenancy.Budget // saved weights

	mu      sync.Mutex
	pending int // futures without a result
	polls   int // that wait for one

	results     []*future // that can be read, the oldest first; guarded by the server's mu
	resultBytes int64     // of these
}

// queueEntry is about what a request takes beside its body while it waits, in bytes, and each sample.
const queueEntry = 4 << 10

// body is what one queued body may have. Twice as much fits into the queue, so that the next request of a run is never
// kept out by those that wait for it.
func (l *Limits) body(limit int64) int64 { return min(limit, l.QueuedBytes/2-2*queueEntry) }

// user is a tenant by one of its keys.
type user struct {
	*tenant
	key *access.Caller
}

// all is the tenant without limits: the server itself.
func (t *tenant) all() *user { return &user{t, access.All(t.name)} }

// begin counts a future that waits, unless there are too many. Only a request whose turn it is gets the last of the
// queue: the others wait for it.
func (t *tenant) begin(cost int64, turn bool, maxBody int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending >= t.limits.Futures && !turn {
		return failf(http.StatusTooManyRequests, "%d requests wait for their results; try again later", t.pending)
	}
	rest := t.limits.body(maxBody) + 2*queueEntry
	if turn {
		rest = 0
	}
	if !t.queued.Take(cost, rest) {
		return failf(http.StatusTooManyRequests,
			"the requests that wait for their results have %d bytes of %d; send this one again when some have ended",
			t.queued.Held(), t.queued.Limit())
	}
	t.pending++
	return nil
}

func (t *tenant) end(cost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending--
	t.queued.Add(-cost)
}

// poll counts a request that is held until a result is there, unless there are too many.
func (t *tenant) poll(f *future) (done func(), err error) {
	select {
	case <-f.done:
		return func() {}, nil
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.polls >= t.limits.Polls {
		return nil, failf(http.StatusTooManyRequests, "%d requests wait for results already; poll fewer at once", t.polls)
	}
	t.polls++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.polls--
	}, nil
}

func newTenant(of *Tenant, limits Limits) *tenant {
	if of.Limits != nil {
		limits = of.Limits.fill(limits)
	}
	return &tenant{
		name: of.Name, limits: limits,
		queued: tenancy.NewBudget(limits.QueuedBytes), stored: tenancy.NewBudget(limits.StoredBytes),
	}
}

// registry has the keys and the prices of the tenants.
func registry(tenants []Tenant) (*access.Registry, error) {
	var list []access.Tenant
	for _, t := range tenants {
		list = append(list, access.Tenant{Name: t.Name, Keys: t.Keys, Scoped: t.Scoped, Prices: t.Prices})
	}
	return access.NewRegistry(list)
}

// Usage returns what each tenant has used, by name.
func (s *Server) Usage() map[string]access.Usage {
	all := map[string]access.Usage{}
	for name, report := range s.users.Usage() {
		all[name] = report.Usage
	}
	return all
}

// Held is what a tenant holds now.
type Held struct {
	Sessions    int   `json:"sessions"`
	Runs        int   `json:"runs"`    // in memory
	Futures     int   `json:"futures"` // without a result
	Polls       int   `json:"polls"`   // that wait for one
	QueuedBytes int64 `json:"queued_bytes"`
	ResultBytes int64 `json:"result_bytes"`
	StoredBytes int64 `json:"stored_bytes"`
}

// Held returns what each tenant holds, by name. [Limits] bounds it.
func (s *Server) Held() map[string]Held {
	all := map[string]Held{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tenants {
		t.mu.Lock()
		all[t.name] = Held{
			Sessions: s.liveSessions(t), Runs: s.liveRuns(t), Futures: t.pending, Polls: t.polls,
			QueuedBytes: t.queued.Held(), ResultBytes: t.resultBytes, StoredBytes: t.stored.Held(),
		}
		t.mu.Unlock()
	}
	return all
}

// showUsage serves GET usage: of the tenant with all keys, or of a key with limits.
func (s *Server) showUsage(w http.ResponseWriter, _ *http.Request, t *user) error {
	report := s.users.Usage()[t.name]
	if t.key.Limited() {
		return sendJSON(w, http.StatusOK, report.Keys[t.key.Key()])
	}
	return sendJSON(w, http.StatusOK, report)
}

// checkMetadata refuses a request that writes more than is kept of it.
func (l *Limits) checkMetadata(req *tinkerwire.Request) error {
	n := metadataSize(req.Tags) + metadataSize(req.UserMetadata) + int64(len(req.ProjectID)+len(req.DisplayName))
	if n <= l.MetadataBytes {
		return nil
	}
	return failf(http.StatusRequestEntityTooLarge,
		"tags, user_metadata, display_name and project_id have %d bytes, want at most %d; keep less here", n, l.MetadataBytes)
}

// metadataSize is the length of JSON.
func metadataSize(v any) int64 {
	data, err := json.Marshal(v)
	if err != nil || string(data) == "null" { // it came from JSON
		return 0
	}
	return int64(len(data))
}

// runMetadata is how many times the metadata of one thing the weights of a run may have together: all are in one file.
const runMetadata = 16

// checkMetadata refuses metadata of further weights. mu is held.
func (r *run) checkMetadata(more map[string]any) error {
	n, limit := metadataSize(more), runMetadata*r.tenant.limits.MetadataBytes
	for i := range r.record.Checkpoints {
		n += metadataSize(r.record.Checkpoints[i].UserMetadata)
	}
	if n <= limit {
		return nil
	}
	return failf(http.StatusRequestEntityTooLarge,
		"the user_metadata of all saved weights of the run have %d bytes, want at most %d; delete some weights", n, limit)
}

// mayStore refuses further weights of a tenant that has too many.
func (t *tenant) mayStore(estimate int64) error {
	if t.stored.Take(estimate, 0) {
		return nil
	}
	return failf(http.StatusForbidden,
		"saved weights have %d bytes of %d; delete some (DELETE training_runs/RUN/checkpoints/KIND/NAME, or "+
			"delete_checkpoint of the SDK's RestClient), or let them expire", t.stored.Held(), t.stored.Limit())
}

// savesWeights reports whether an operation stores weights.
func savesWeights(op string) bool { return op == opSave || op == opSampler || op == opExternal }
