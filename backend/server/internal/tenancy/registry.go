package tenancy

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art/backend/server/access"
)

// scopes are all that a key can have.
var scopes = []access.Scope{access.Sample, access.Train, access.List, access.Download, access.Delete}

// Tenant is a user of a server.
type Tenant struct {
	Name   string
	Keys   []string     // without limits
	Scoped []access.Key // with limits
	Prices access.Prices
}

// Registry has the tenants of a server. Make one with [NewRegistry].
type Registry struct {
	tenants []*account

	mu sync.Mutex // guards the usage of all
}

// account is a tenant.
type account struct {
	Tenant
	secrets []secret
	usage   access.Report
}

// secret is a key by its hash. Hashes have equal lengths, so that comparing them takes constant time.
type secret struct {
	hash [sha256.Size]byte
	key  *access.Key // nil: no limits
}

// NewRegistry makes a registry. The error lists all problems.
func NewRegistry(tenants []Tenant) (*Registry, error) {
	l := &Registry{}
	var p []error
	for _, t := range tenants {
		a := &account{Tenant: t}
		a.admit(t.Keys)
		names := map[string]bool{}
		for i := range t.Scoped {
			key := &t.Scoped[i]
			p = append(p, validate(key, t.Name, names)...)
			a.secrets = append(a.secrets, secret{sha256.Sum256([]byte(key.Key)), key})
		}
		l.tenants = append(l.tenants, a)
	}
	// A secret that is there twice is refused: it would be unclear whose it is.
	seen := map[[sha256.Size]byte]string{}
	for _, a := range l.tenants {
		for _, s := range a.secrets {
			if owner, taken := seen[s.hash]; taken && (s.key != nil || owner != a.Name) {
				p = append(p, fmt.Errorf("a key of %q is a key of %q too", a.Name, owner))
			}
			seen[s.hash] = a.Name
		}
	}
	return l, errors.Join(p...)
}

// validate lists what is wrong with a key of a tenant, of which others have the names. The secret is in no error.
func validate(k *access.Key, tenant string, names map[string]bool) (p []error) {
	if k.Name == "" || names[k.Name] {
		p = append(p, fmt.Errorf("a scoped key of %q has the name %q, which is empty or taken", tenant, k.Name))
	}
	names[k.Name] = true
	if k.Key == "" {
		p = append(p, fmt.Errorf("the scoped key %q of %q is empty", k.Name, tenant))
	}
	for _, s := range k.Scopes {
		if !slices.Contains(scopes, s) {
			p = append(p, fmt.Errorf("the scoped key %q of %q has the scope %q; there are %q", k.Name, tenant, s, scopes))
		}
	}
	return p
}

// admit adds keys without limits.
func (a *account) admit(keys []string) {
	for _, key := range keys {
		a.secrets = append(a.secrets, secret{sha256.Sum256([]byte(key)), nil})
	}
}

// Admit adds keys without limits to the first tenant. Call it before requests are served.
func (l *Registry) Admit(keys []string) { l.tenants[0].admit(keys) }

// Secrets are all keys, for a guard before the routes.
func (l *Registry) Secrets() (keys []string) {
	for _, a := range l.tenants {
		keys = append(keys, a.Keys...)
		for i := range a.Scoped {
			keys = append(keys, a.Scoped[i].Key)
		}
	}
	return keys
}

// Caller returns who sends a request, by its Authorization: Bearer or X-Api-Key header. It is nil when the key is
// nobody's. Without any keys there is one tenant, whose every request is.
func (l *Registry) Caller(r *http.Request) *Caller {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	sent := [2][sha256.Size]byte{
		sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(r.Header.Get("X-Api-Key"))),
	}
	var found *Caller
	keys := 0
	for _, a := range l.tenants {
		for _, s := range a.secrets {
			keys++
			if subtle.ConstantTimeCompare(sent[0][:], s.hash[:])|subtle.ConstantTimeCompare(sent[1][:], s.hash[:]) == 1 {
				found = &Caller{Tenant: a.Name, key: s.key}
			}
		}
	}
	if keys == 0 && len(l.tenants) == 1 {
		return Unlimited(l.tenants[0].Name)
	}
	return found
}

// Tenant is the name of who sends a request, "" when the key is nobody's.
func (l *Registry) Tenant(r *http.Request) string {
	if c := l.Caller(r); c != nil {
		return c.Tenant
	}
	return ""
}

// Usage returns what each tenant has used, by name.
func (l *Registry) Usage() map[string]access.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]access.Report{}
	for _, a := range l.tenants {
		all[a.Name] = access.Report{Usage: a.usage.Usage, Keys: maps.Clone(a.usage.Keys)}
	}
	return all
}

// Restore sets what was used before a restart.
func (l *Registry) Restore(all map[string]access.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.tenants {
		a.usage = all[a.Name]
	}
}

// Charge adds to what a tenant has used by a key, whose name is "" without limits, and to its cost.
func (l *Registry) Charge(tenant, key string, u access.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.tenants {
		if a.Name != tenant {
			continue
		}
		u.Cost += (float64(u.PromptTokens)*a.Prices.Prompt + float64(u.SampledTokens)*a.Prices.Sampled +
			float64(u.TrainedTokens)*a.Prices.Trained) / 1e6
		a.usage.Usage = plus(a.usage.Usage, u)
		if key == "" {
			return
		}
		if a.usage.Keys == nil {
			a.usage.Keys = map[string]access.Usage{}
		}
		a.usage.Keys[key] = plus(a.usage.Keys[key], u)
	}
}

func plus(u, more access.Usage) access.Usage {
	u.PromptTokens += more.PromptTokens
	u.SampledTokens += more.SampledTokens
	u.TrainedTokens += more.TrainedTokens
	u.Seconds += more.Seconds
	u.Cost += more.Cost
	return u
}
