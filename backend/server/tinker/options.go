package tinker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/stable"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// Options configure a [Server].
type Options struct {
	// Dir is the folder of the server's own state: sessions, the index of runs and checkpoints, and requests that are not
	// part of a stored step yet. It must be of this server alone. Required.
	Dir string
	// Bases are the base models that clients may name. At least one.
	Bases []Base
	// Tenants are the users, with keys of their own: none sees what is another's. Without tenants there is one, "default",
	// with the keys of the handler.
	Tenants []Tenant
	// Limits bound each tenant that has none of its own.
	Limits Limits
	// Alpha of the adapters: W x + (Alpha/Rank) B A x. The protocol has no field for it. Default 32.
	Alpha float64
	// KeepSteps is how many of the newest steps of a run are kept on disk; each optimizer step is one. Those that were
	// saved under a name are kept until they are deleted. Default 2.
	KeepSteps int
	// SessionTimeout is how long a session lives without any request of its client. Its runs are then released from
	// memory, and stay on disk. Default 5 minutes.
	SessionTimeout time.Duration
	// GapTimeout is how long a request waits for one with a smaller seq_id that has not arrived; it then fails. Default
	// 10 minutes, longer than clients retry.
	GapTimeout time.Duration
	// PollTime is how long a poll for a result is held. Default 20 seconds; clients give up after 45.
	PollTime time.Duration
	// KeepResults is how long a result can be read after it is there. Default 30 minutes.
	KeepResults time.Duration
	// Slots are how many samples are drawn at once, of all tenants. Default 32.
	Slots int
	// MaxBody bounds the body of a request, in bytes. Default 64 MiB.
	MaxBody int64
	// Folder returns the folder with the files of saved weights, by their path ([art.Model.SaveWeights]), for archives.
	// nil: archives are refused.
	Folder func(path string) (string, error)
	// Logger receives internal errors. nil discards them.
	Logger *slog.Logger

	noSync bool        // tests do not wait for the disk
	disk   stable.Disk // tests inject faults
}

// Base is a base model.
type Base struct {
	// Name is what clients call it, such as "Qwen/Qwen3-8B": they choose a tokenizer and a chat format by it.
	Name string
	// Model is what the backend calls it: [art.ModelOptions].Base. Default Name.
	Model string
	// Tokenizer is a name or a folder from which clients load the tokenizer. Default: clients use Name.
	Tokenizer string
	// MaxContext is the number of tokens that it reads at most. 0: not told.
	MaxContext int
}

// Tenant is a user of the server.
type Tenant struct {
	// Name is the project of the tenant's runs, and so a folder.
	Name string
	// Keys are the secrets that clients send. The SDKs want those that begin with "tml-".
	Keys []string
	// Scoped are further ones, with limits: scopes, projects and runs. The project of a run is the project_id of its
	// session. docs/tinker.md lists the scopes of the routes.
	Scoped []access.Key
	// Limits replace those of the server. nil: the same.
	Limits *Limits
	// Prices make money of what the tenant uses. Zero: none.
	Prices access.Prices
}

// Limits bound a tenant. 0 is the default.
type Limits struct {
	Sessions int // that are alive. Default 64
	Runs     int // that are in memory. Default 64
	Futures  int // requests that wait for their result. Default 4096; clients back off (status 429)
	Polls    int // for results, that are held. Default 1024; clients back off (status 429)
	Datums   int // of one request. Default 1024
	Tokens   int // of one request: of all its data, or of its prompt and reply times samples. Default 4 million
	Targets  int // of one position. Default 256
	Samples  int // of one request. Default 256
	Results  int // that are kept to be read. Default 65,536; the oldest is dropped

	// QueuedBytes bounds the bodies of all requests that wait for their result. Default 256 MiB; clients back off (status
	// 429). One body may have half of it.
	QueuedBytes int64
	// ResultBytes bounds the results that are kept. Default 256 MiB; the oldest is dropped.
	ResultBytes int64
	// MetadataBytes bounds what a client writes to a session, a run or saved weights: tags, names, user_metadata.
	// Default 64 KiB.
	MetadataBytes int64
	// StoredBytes bounds all saved weights. Default 20 GiB; further ones are refused (status 403) until some are deleted.
	StoredBytes int64
}

// Backend is what a [Server] needs: a backend with the primitives of training and of sampling, such as
// [github.com/goart-dev/art/backend/local].
type Backend interface {
	art.Backend
	loop.Trainer
	driver.Sampler
}

func (o *Options) fill() {
	o.Limits = o.Limits.fill(Limits{})
	o.Alpha, o.KeepSteps = cmp.Or(o.Alpha, 32), cmp.Or(o.KeepSteps, 2)
	o.SessionTimeout, o.GapTimeout = cmp.Or(o.SessionTimeout, 5*time.Minute), cmp.Or(o.GapTimeout, 10*time.Minute)
	o.PollTime, o.KeepResults = cmp.Or(o.PollTime, 20*time.Second), cmp.Or(o.KeepResults, 30*time.Minute)
	o.Slots, o.MaxBody = cmp.Or(o.Slots, 32), cmp.Or(o.MaxBody, 64<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if len(o.Tenants) == 0 {
		o.Tenants = []Tenant{{Name: "default"}}
	}
}

// fill returns the limits, with those of the server, or the defaults, where there is none.
func (l Limits) fill(of Limits) Limits {
	return Limits{
		Sessions: cmp.Or(l.Sessions, max(of.Sessions, 0), 64), Runs: cmp.Or(l.Runs, of.Runs, 64),
		Futures: cmp.Or(l.Futures, of.Futures, 4096), Polls: cmp.Or(l.Polls, of.Polls, 1024),
		Datums: cmp.Or(l.Datums, of.Datums, 1024), Tokens: cmp.Or(l.Tokens, of.Tokens, 4_000_000),
		Targets: cmp.Or(l.Targets, of.Targets, 256), Samples: cmp.Or(l.Samples, of.Samples, 256),
		Results:       cmp.Or(l.Results, of.Results, 1<<16),
		QueuedBytes:   cmp.Or(l.QueuedBytes, of.QueuedBytes, 256<<20),
		ResultBytes:   cmp.Or(l.ResultBytes, of.ResultBytes, 256<<20),
		MetadataBytes: cmp.Or(l.MetadataBytes, of.MetadataBytes, 64<<10),
		StoredBytes:   cmp.Or(l.StoredBytes, of.StoredBytes, 20<<30),
	}
}

// minQueued is the least queue that has room for any request.
const minQueued = 4 << 20

func (o *Options) validate() error {
	var p []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			p = append(p, fmt.Errorf(format, args...))
		}
	}
	check(o.Dir != "", "Dir is empty")
	check(len(o.Bases) > 0, "there are no Bases")
	check(o.Alpha > 0 && o.KeepSteps > 0 && o.Slots > 0 && o.MaxBody > 0, "Alpha, KeepSteps, Slots or MaxBody is negative")
	check(min(o.SessionTimeout, o.GapTimeout, o.PollTime, o.KeepResults) > 0, "a time is negative")
	all := []Limits{o.Limits}
	for _, t := range o.Tenants {
		if t.Limits != nil {
			all = append(all, t.Limits.fill(o.Limits))
		}
	}
	for _, l := range all {
		check(l.QueuedBytes >= minQueued, "QueuedBytes is %d, want %d or more", l.QueuedBytes, minQueued)
		counts := []int{l.Sessions, l.Runs, l.Futures, l.Polls, l.Datums, l.Tokens, l.Targets, l.Samples, l.Results}
		check(slices.Min(counts) >= 0 && min(l.ResultBytes, l.MetadataBytes, l.StoredBytes) >= 0, "a limit is negative")
	}
	names := map[string]bool{}
	for i := range o.Bases {
		name := o.Bases[i].Name
		check(name != "" && !names[name], "Bases[%d] has the name %q, which is empty or taken", i, name)
		names[name] = true
		o.Bases[i].Model = cmp.Or(o.Bases[i].Model, name)
	}
	seen := map[string]bool{}
	for i, t := range o.Tenants {
		check(!seen[t.Name], "Tenants[%d] has the name %q, which is taken", i, t.Name)
		if err := tenancy.CheckName(t.Name); err != nil {
			p = append(p, fmt.Errorf("Tenants[%d].Name: %w", i, err))
		}
		seen[t.Name] = true
	}
	_, err := registry(o.Tenants)
	if err = errors.Join(append(p, err)...); err != nil {
		return &art.Error{Op: "serve tinker", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: "correct the Options"}
	}
	return nil
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
	key *tenancy.Caller
}

// all is the tenant without limits: the server itself.
func (t *tenant) all() *user { return &user{t, tenancy.Unlimited(t.name)} }

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
func registry(tenants []Tenant) (*tenancy.Registry, error) {
	var list []tenancy.Tenant
	for _, t := range tenants {
		list = append(list, tenancy.Tenant{Name: t.Name, Keys: t.Keys, Scoped: t.Scoped, Prices: t.Prices})
	}
	return tenancy.NewRegistry(list)
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
