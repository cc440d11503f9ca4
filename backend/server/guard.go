package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// Defaults of [art.HandlerOptions].
const (
	defaultMaxBodies   = 256 << 20
	defaultBodyTimeout = time.Minute
	defaultMaxRequests = 1024
)

// guard enforces [art.HandlerOptions] before the routes.
type guard struct {
	hosts   hosts
	origins origins
	keys    keys
	bodies  *shares
	running *shares                    // requests
	timeout time.Duration              // for a body to arrive
	keyless func(*http.Request) bool   // may be nil
	client  func(*http.Request) string // whose share a request counts against
	refuse  func(http.ResponseWriter, *http.Request, error)
	routes  http.Handler
}

// GuardConfig configures [Guard].
type GuardConfig struct {
	// Keyless reports whether a request needs no key, beside those of probes. nil: all need one.
	Keyless func(*http.Request) bool
	// Client names who sends a request, whose share of [art.HandlerOptions].MaxRequests and MaxBodies it counts against.
	// Half of both is divided equally among Clients, and among requests that are Keyless as one more: what one has of
	// that, no other can take. The other half is for who comes first. nil: all requests are of one client.
	Client func(*http.Request) string
	// Clients is how many there are.
	Clients int
	// Refuse answers a request that is not admitted; [Status] is the status of its error. nil: a JSON error as the routes
	// of this package give.
	Refuse func(http.ResponseWriter, *http.Request, error)
	// Logger receives internal errors, unless Refuse is set. nil discards them.
	Logger *slog.Logger
}

// Guard admits to next the clients that [Handler] would admit: by Host, Origin and key. Requests without a key reach
// next at /health and /readyz only. It bounds all bodies together; next bounds each by opts.MaxBody itself. opts and
// cfg may be nil; invalid options are an [art.ErrInvalid] that lists all problems.
func Guard(next http.Handler, opts *art.HandlerOptions, cfg *GuardConfig) (http.Handler, error) {
	var c GuardConfig
	if cfg != nil {
		c = *cfg
	}
	clients := c.Clients
	if c.Keyless != nil {
		clients++
	}
	g, _, err := newGuard(opts, clients)
	if err != nil {
		return nil, err
	}
	g.routes, g.keyless, g.refuse = next, c.Keyless, c.Refuse
	if c.Client != nil {
		g.client = c.Client
	}
	if g.refuse == nil {
		g.refuse = refusal(c.Logger)
	}
	return g, nil
}

// refusal answers with an error of this package's routes.
func refusal(logger *slog.Logger) func(http.ResponseWriter, *http.Request, error) {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	return func(w http.ResponseWriter, r *http.Request, err error) { fail(logger, w, r, err) }
}

// Status is the HTTP status of an error that [Guard] hands to Refuse.
func Status(err error) int { return wire.AsError(err).Status }

// Handler serves [Routes] to the clients that opts admit. cfg and opts may be nil. The limits of opts replace those of
// cfg. Invalid options are an [art.ErrInvalid] that lists all problems.
func Handler(models Models, cfg *Config, opts *art.HandlerOptions) (http.Handler, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	g, limits, err := newGuard(opts, 1)
	if err != nil {
		return nil, err
	}
	c.MaxBody, c.MaxChoices, c.MaxTokens = limits.body, limits.choices, limits.tokens
	g.routes, g.refuse = Routes(models, &c), refusal(c.Logger)
	return g, nil
}

// limits are those of a request.
type limits struct {
	body            int64
	choices, tokens int
}

// newGuard returns a guard without routes, and the limits that the routes enforce.
func newGuard(opts *art.HandlerOptions, clients int) (*guard, limits, error) {
	if opts == nil {
		opts = &art.HandlerOptions{}
	}
	var p []string
	l := limits{
		body:    positive(&p, "MaxBody", opts.MaxBody, defaultMaxBody),
		choices: int(positive(&p, "MaxChoices", int64(opts.MaxChoices), defaultMaxChoices)),
		tokens:  int(positive(&p, "MaxTokens", int64(opts.MaxTokens), 0)),
	}
	g := &guard{
		timeout: positive(&p, "BodyTimeout", opts.BodyTimeout, defaultBodyTimeout),
		bodies:  newShares(positive(&p, "MaxBodies", opts.MaxBodies, max(defaultMaxBodies, l.body)), clients),
		running: newShares(positive(&p, "MaxRequests", int64(opts.MaxRequests), defaultMaxRequests), clients),
		client:  func(*http.Request) string { return "" },
	}
	if g.bodies.limit < l.body {
		p = append(p, fmt.Sprintf("MaxBodies is %d, less than MaxBody, which is %d", g.bodies.limit, l.body))
	}
	g.hosts, g.origins, g.keys = newHosts(&p, opts.Hosts), newOrigins(&p, opts.Origins), newKeys(&p, opts.Keys)
	if (g.hosts.any || g.origins.any) && len(g.keys) == 0 {
		p = append(p, `"*" in Hosts or Origins without Keys would let every web page in`)
	}
	if len(p) > 0 {
		return nil, l, invalidOptions("serve", "HandlerOptions", p)
	}
	return g, l, nil
}

// positive returns x, or the default if x is 0. A negative x is a problem.
func positive[T ~int64](p *[]string, name string, x, fallback T) T {
	switch {
	case x < 0:
		*p = append(*p, fmt.Sprintf("%s is %v, want > 0, or 0 for the default", name, x))
	case x > 0:
		return x
	}
	return fallback
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, release := g.limited(w, r)
	defer release()
	if err := g.hosts.check(r); err != nil {
		g.refuse(w, r, err)
		return
	}
	if err := g.origins.check(w, r); err != nil {
		g.refuse(w, r, err)
		return
	}
	if isPreflight(r) { // browsers send it without a key
		answerPreflight(w, r)
		return
	}
	if isProbe(r) { // an orchestrator has no key
		g.routes.ServeHTTP(w, r)
		return
	}
	if g.keyless == nil || !g.keyless(r) {
		if err := g.keys.check(w, r); err != nil {
			g.refuse(w, r, err)
			return
		}
	}
	place := &slot{shares: g.running, client: g.client(r)}
	if !g.running.take(place.client, 1) {
		g.refuse(w, r, unavailable(http.StatusServiceUnavailable, "too_many_requests", retryAfter,
			"%d requests are being answered, or as many as this client's share of them; try again, "+
				"or raise MaxRequests of HandlerOptions", g.running.limit))
		return
	}
	defer place.release()
	r = g.keys.withOwner(r)
	g.routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), slotKey{}, place)))
}

// keys are the hashes of the API keys. Hashes have equal lengths, so that comparing them takes constant time.
type keys [][sha256.Size]byte

// newKeys parses [art.HandlerOptions].Keys. Its errors do not contain the keys.
func newKeys(p *[]string, list []string) keys {
	var k keys
	for i, key := range list {
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			*p = append(*p, fmt.Sprintf("Keys[%d] is empty, or has white space or other characters that no header can hold", i))
		}
		k = append(k, sha256.Sum256([]byte(key)))
	}
	return k
}

// check refuses requests without a valid key, if there are keys.
func (k keys) check(w http.ResponseWriter, r *http.Request) error {
	if len(k) == 0 || k.has(bearer(r.Header.Get("Authorization")))|k.has(r.Header.Get("X-Api-Key")) == 1 {
		return nil
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	return refused(http.StatusUnauthorized, "invalid_api_key", "the API key is missing or wrong; "+
		`send one of the server's keys as "Authorization: Bearer KEY" or "X-Api-Key: KEY"`)
}

// owner identifies the key of an admitted request by its hash. It is zero when the server has no keys.
type owner [sha256.Size]byte

// ownerKey is the context key of an owner.
type ownerKey struct{}

// withOwner returns a request that check has admitted with its owner in its context.
func (k keys) withOwner(r *http.Request) *http.Request {
	if len(k) == 0 {
		return r
	}
	key := bearer(r.Header.Get("Authorization"))
	if k.has(key) == 0 {
		key = r.Header.Get("X-Api-Key")
	}
	return r.WithContext(context.WithValue(r.Context(), ownerKey{}, owner(sha256.Sum256([]byte(key)))))
}

func ownerOf(ctx context.Context) owner {
	by, _ := ctx.Value(ownerKey{}).(owner)
	return by
}

// has returns 1 if a key is one of k, else 0, in a time that depends on len(k) only.
func (k keys) has(key string) int {
	hash, found := sha256.Sum256([]byte(key)), 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(hash[:], k[i][:])
	}
	return found
}

// bearer returns the token of an Authorization header, or "" if its scheme is another one.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
