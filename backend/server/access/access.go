// Package access is who may do what on a training server, and what it costs: the users, their keys with scopes, and
// what each key has used. The routes of Tinker and of W&B Training share it.
//
// A key without limits may do all that its tenant may. A key with limits has scopes, projects or runs, and no route
// does for it what they do not cover: [Caller.Needs] and [Caller.Reaches] are errors that say what is missing.
package access

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
)

// Scope is what a key may do.
type Scope string

// The scopes.
const (
	Sample   Scope = "sample"   // ask models for samples and replies
	Train    Scope = "train"    // create runs, train them, and save and load weights
	List     Scope = "list"     // read the lists of runs, checkpoints, sessions and events
	Download Scope = "download" // download weights
	Delete   Scope = "delete"   // delete runs and checkpoints, and let them expire
)

// scopes are all of them.
var scopes = []Scope{Sample, Train, List, Download, Delete}

// Key is a secret with limits.
type Key struct {
	// Name tells keys apart in usage and errors. Required, and another one for each key of a tenant.
	Name string
	// Key is the secret that clients send. Required.
	Key string
	// Scopes are what it may do. Empty: everything.
	Scopes []Scope
	// Projects and Runs are what it may do that to, together. Empty: everything. A run is the id of a training run of
	// Tinker, or PROJECT/NAME of W&B Training. A key that has either does not sample from base models: they are no run.
	Projects, Runs []string
}

// Prices are amounts of money for a million tokens each, in any currency.
type Prices struct {
	Prompt, Sampled, Trained float64
}

// Tenant is a user of a server.
type Tenant struct {
	Name   string
	Keys   []string // without limits
	Scoped []Key    // with limits
	Prices Prices
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
	usage   Report
}

// secret is a key by its hash. Hashes have equal lengths, so that comparing them takes constant time.
type secret struct {
	hash [sha256.Size]byte
	key  *Key // nil: no limits
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
			p = append(p, key.validate(t.Name, names)...)
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

// validate lists what is wrong with a key. The secret is in no error.
func (k *Key) validate(tenant string, names map[string]bool) (p []error) {
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
		return All(l.tenants[0].Name)
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

// All returns a caller without limits.
func All(tenant string) *Caller { return &Caller{Tenant: tenant} }

// Usage returns what each tenant has used, by name.
func (l *Registry) Usage() map[string]Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]Report{}
	for _, a := range l.tenants {
		all[a.Name] = Report{a.usage.Usage, maps.Clone(a.usage.Keys)}
	}
	return all
}

// Restore sets what was used before a restart.
func (l *Registry) Restore(all map[string]Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.tenants {
		a.usage = all[a.Name]
	}
}

// Charge adds to what a tenant has used by a key, whose name is "" without limits, and to its cost.
func (l *Registry) Charge(tenant, key string, u Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.tenants {
		if a.Name != tenant {
			continue
		}
		u.Cost += (float64(u.PromptTokens)*a.Prices.Prompt + float64(u.SampledTokens)*a.Prices.Sampled +
			float64(u.TrainedTokens)*a.Prices.Trained) / 1e6
		a.usage.Usage = a.usage.plus(u)
		if key == "" {
			return
		}
		if a.usage.Keys == nil {
			a.usage.Keys = map[string]Usage{}
		}
		a.usage.Keys[key] = a.usage.Keys[key].plus(u)
	}
}

// Usage is what was used.
type Usage struct {
	PromptTokens  int64   `json:"prompt_tokens"`  // read for samples and replies
	SampledTokens int64   `json:"sampled_tokens"` // written
	TrainedTokens int64   `json:"trained_tokens"` // read by training
	Seconds       float64 `json:"seconds"`        // of training
	Cost          float64 `json:"cost"`           // by the prices of the tenant
}

func (u Usage) plus(more Usage) Usage {
	u.PromptTokens += more.PromptTokens
	u.SampledTokens += more.SampledTokens
	u.TrainedTokens += more.TrainedTokens
	u.Seconds += more.Seconds
	u.Cost += more.Cost
	return u
}

// Report is what a tenant has used, and what of it by each key with limits, by its name.
type Report struct {
	Usage
	Keys map[string]Usage `json:"keys,omitempty"`
}

// Caller is who sends a request.
type Caller struct {
	Tenant string
	key    *Key // nil: no limits
}

// DeniedError says what a key lacks. Its HTTP status is 403.
type DeniedError struct{ text string }

// Error implements error.
func (e *DeniedError) Error() string { return e.text }

func (c *Caller) denied(format string, args ...any) error {
	return &DeniedError{fmt.Sprintf("the key %q of %q %s", c.key.Name, c.Tenant, fmt.Sprintf(format, args...))}
}

// Key is the name of the key, "" for one without limits.
func (c *Caller) Key() string {
	if c.key == nil {
		return ""
	}
	return c.key.Name
}

// Limited reports whether the key has limits.
func (c *Caller) Limited() bool { return c.key != nil }

// Needs is a [DeniedError] unless the key has one of the scopes, which what needs.
func (c *Caller) Needs(what string, any ...Scope) error {
	if c.key == nil || len(c.key.Scopes) == 0 || len(any) == 0 {
		return nil
	}
	if slices.ContainsFunc(any, func(s Scope) bool { return slices.Contains(c.key.Scopes, s) }) {
		return nil
	}
	quoted := make([]string, len(any))
	for i, s := range any {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return c.denied("has the scopes %q; %s needs %s", c.key.Scopes, what, strings.Join(quoted, " or "))
}

// narrowed reports whether the key is limited to projects or runs.
func (c *Caller) narrowed() bool { return c.key != nil && len(c.key.Projects)+len(c.key.Runs) > 0 }

// sees reports whether the key covers a run of a project.
func (c *Caller) sees(project, run string) bool {
	return !c.narrowed() || project != "" && slices.Contains(c.key.Projects, project) ||
		run != "" && slices.Contains(c.key.Runs, run)
}

// Reaches is a [DeniedError] unless the key covers a run of a project. run is "" for one that is still to be made.
func (c *Caller) Reaches(project, run string) error {
	if c.sees(project, run) {
		return nil
	}
	if run == "" {
		return c.denied("is limited to %s; the project %.100q is not among them", c.limits(), project)
	}
	return c.denied("is limited to %s; %.200q is not among them", c.limits(), run)
}

// ReachesProject is a [DeniedError] unless the key covers something of a project: it, or a run PROJECT/NAME.
func (c *Caller) ReachesProject(project string) error {
	if c.sees(project, "") {
		return nil
	}
	if slices.ContainsFunc(c.key.Runs, func(run string) bool { return strings.HasPrefix(run, project+"/") }) {
		return nil
	}
	return c.Reaches(project, "")
}

// ReachesBase is a [DeniedError] for a key that is limited to projects or runs: a base model is none.
func (c *Caller) ReachesBase(name string) error {
	if !c.narrowed() {
		return nil
	}
	return c.denied("is limited to %s; the base model %.100q is not among them", c.limits(), name)
}

// Project returns the project of a key that is limited to one, for requests that name none.
func (c *Caller) Project() string {
	if c.narrowed() && len(c.key.Projects) == 1 {
		return c.key.Projects[0]
	}
	return ""
}

func (c *Caller) limits() string {
	var parts []string
	if len(c.key.Projects) > 0 {
		parts = append(parts, fmt.Sprintf("the projects %q", c.key.Projects))
	}
	if len(c.key.Runs) > 0 {
		parts = append(parts, fmt.Sprintf("the runs %q", c.key.Runs))
	}
	return strings.Join(parts, " and ")
}
