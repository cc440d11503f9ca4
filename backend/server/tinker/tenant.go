package tinker

import (
	"net/http"
	"sync"

	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
)

// Usage is what a tenant has used.
type Usage struct {
	PromptTokens  int64   `json:"prompt_tokens"`  // read for samples
	SampledTokens int64   `json:"sampled_tokens"` // written
	TrainedTokens int64   `json:"trained_tokens"` // read by forward passes of training
	Seconds       float64 `json:"seconds"`        // of training operations
	Cost          float64 `json:"cost"`           // by the prices of the tenant
}

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

// restored counts a future from before a restart.
func (t *tenant) restored(cost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending++
	t.queued.Add(cost)
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
	t := &tenant{name: of.Name}
	if of.Limits != nil {
		t.limits = *of.Limits
	}
	t.limits.fill(limits)
	t.queued, t.stored = tenancy.NewBudget(t.limits.QueuedBytes), tenancy.NewBudget(t.limits.StoredBytes)
	return t
}

// registry has the keys and the prices of the tenants.
func registry(tenants []Tenant) (*access.Registry, error) {
	var list []access.Tenant
	for _, t := range tenants {
		of := access.Tenant{Name: t.Name, Keys: t.Keys, Scoped: t.Scoped}
		if t.Prices != nil {
			of.Prices = access.Prices(*t.Prices)
		}
		list = append(list, of)
	}
	return access.NewRegistry(list)
}

// callerOf returns who sends a request, nil when the key is nobody's.
func (s *Server) callerOf(r *http.Request) *user {
	key := s.users.Caller(r)
	if key == nil {
		return nil
	}
	return &user{s.tenantNamed(key.Tenant), key}
}

// Usage returns what each tenant has used, by name.
func (s *Server) Usage() map[string]Usage {
	all := map[string]Usage{}
	for name, report := range s.users.Usage() {
		all[name] = Usage(report.Usage)
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
			Futures: t.pending, Polls: t.polls, QueuedBytes: t.queued.Held(), ResultBytes: t.resultBytes,
			StoredBytes: t.stored.Held(),
		}
		t.mu.Unlock()
	}
	for _, live := range s.sessions {
		h := all[live.tenant.name]
		h.Sessions++
		all[live.tenant.name] = h
	}
	for _, r := range s.runs {
		h := all[r.tenant.name]
		h.Runs++
		all[r.tenant.name] = h
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
