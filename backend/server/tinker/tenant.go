package tinker

import (
	"net/http"
	"sync"

	"github.com/goart-dev/art/backend/server/access"
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

	mu      sync.Mutex
	pending int // futures without a result
}

// user is a tenant by one of its keys.
type user struct {
	*tenant
	key *access.Caller
}

// all is the tenant without limits: the server itself.
func (t *tenant) all() *user { return &user{t, access.All(t.name)} }

// begin counts a future that waits, unless there are too many.
func (t *tenant) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending >= t.limits.Futures {
		return false
	}
	t.pending++
	return true
}

// restored counts a future from before a restart.
func (t *tenant) restored() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending++
}

func (t *tenant) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending--
}

func newTenant(of *Tenant, limits Limits) *tenant {
	t := &tenant{name: of.Name}
	if of.Limits != nil {
		t.limits = *of.Limits
	}
	t.limits.fill(limits)
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

// showUsage serves GET usage: of the tenant with all keys, or of a key with limits.
func (s *Server) showUsage(w http.ResponseWriter, _ *http.Request, t *user) error {
	report := s.users.Usage()[t.name]
	if t.key.Limited() {
		return sendJSON(w, http.StatusOK, report.Keys[t.key.Key()])
	}
	return sendJSON(w, http.StatusOK, report)
}
