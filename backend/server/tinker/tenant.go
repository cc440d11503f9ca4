package tinker

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
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
	keys   [][sha256.Size]byte
	limits Limits
	prices Prices

	mu      sync.Mutex
	usage   Usage
	pending int // futures without a result
}

// charge adds to the usage.
func (t *tenant) charge(u Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage.PromptTokens += u.PromptTokens
	t.usage.SampledTokens += u.SampledTokens
	t.usage.TrainedTokens += u.TrainedTokens
	t.usage.Seconds += u.Seconds
	t.usage.Cost += (float64(u.PromptTokens)*t.prices.Prompt + float64(u.SampledTokens)*t.prices.Sampled +
		float64(u.TrainedTokens)*t.prices.Trained) / 1e6
}

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

// newTenant hashes the keys. Hashes have equal lengths, so that comparing them takes constant time.
func newTenant(of *Tenant, limits Limits) *tenant {
	t := &tenant{name: of.Name}
	if of.Limits != nil {
		t.limits = *of.Limits
	}
	t.limits.fill(limits)
	if of.Prices != nil {
		t.prices = *of.Prices
	}
	t.admit(of.Keys)
	return t
}

// admit adds keys.
func (t *tenant) admit(keys []string) {
	for _, key := range keys {
		t.keys = append(t.keys, sha256.Sum256([]byte(key)))
	}
}

// tenantOf returns the tenant of a request, nil when the key is nobody's. Without any keys there is one tenant.
func (s *Server) tenantOf(r *http.Request) *tenant {
	key := r.Header.Get("X-Api-Key")
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); key == "" && ok &&
		strings.EqualFold(scheme, "Bearer") {
		key = strings.TrimSpace(token)
	}
	hash, any := sha256.Sum256([]byte(key)), false
	var found *tenant
	for _, t := range s.tenants {
		for i := range t.keys {
			any = true
			if subtle.ConstantTimeCompare(hash[:], t.keys[i][:]) == 1 {
				found = t
			}
		}
	}
	if !any && len(s.tenants) == 1 {
		return s.tenants[0]
	}
	return found
}

// Usage returns what each tenant has used, by name.
func (s *Server) Usage() map[string]Usage {
	all := map[string]Usage{}
	for _, t := range s.tenants {
		t.mu.Lock()
		all[t.name] = t.usage
		t.mu.Unlock()
	}
	return all
}
