package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

// Defaults of [art.HandlerOptions].
const (
	defaultMaxBodies   = 256 << 20
	defaultBodyTimeout = time.Minute
)

// guard enforces [art.HandlerOptions] before the routes.
type guard struct {
	hosts   hosts
	origins origins
	keys    keys
	bodies  budget
	timeout time.Duration            // for a body to arrive
	keyless func(*http.Request) bool // may be nil
	routes  http.Handler
	logger  *slog.Logger
}

// GuardConfig configures [Guard].
type GuardConfig struct {
	// Keyless reports whether a request needs no key, beside those of probes. nil: all need one.
	Keyless func(*http.Request) bool
	// Logger receives internal errors. nil discards them.
	Logger *slog.Logger
}

// Guard serves other routes than those of this package to the clients that opts admit, as [Handler] does. It bounds all
// bodies together; routes bound theirs by opts.MaxBody themselves. opts and cfg may be nil.
func Guard(routes http.Handler, opts *art.HandlerOptions, cfg *GuardConfig) (http.Handler, error) {
	var c GuardConfig
	if cfg != nil {
		c = *cfg
	}
	g, _, err := newGuard(opts)
	if err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	g.routes, g.keyless, g.logger = routes, c.Keyless, c.Logger
	return g, nil
}

// Handler serves [Routes] to the clients that opts admit. cfg and opts may be nil. opts.MaxBody replaces cfg.MaxBody.
// Invalid options are an [art.ErrInvalid] that lists all problems.
func Handler(models Models, cfg *Config, opts *art.HandlerOptions) (http.Handler, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	g, maxBody, err := newGuard(opts)
	if err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.MaxBody = maxBody
	g.routes, g.logger = Routes(models, &c), c.Logger
	return g, nil
}

// newGuard reads options, and returns the limit of a body too.
func newGuard(opts *art.HandlerOptions) (g *guard, maxBody int64, err error) {
	if opts == nil {
		opts = &art.HandlerOptions{}
	}
	var p []string
	maxBody = positive(&p, "MaxBody", opts.MaxBody, defaultMaxBody)
	g = &guard{timeout: positive(&p, "BodyTimeout", opts.BodyTimeout, defaultBodyTimeout)}
	g.bodies.limit = positive(&p, "MaxBodies", opts.MaxBodies, max(defaultMaxBodies, maxBody))
	if g.bodies.limit < maxBody {
		p = append(p, fmt.Sprintf("MaxBodies is %d, less than MaxBody, which is %d", g.bodies.limit, maxBody))
	}
	g.hosts, g.origins, g.keys = newHosts(&p, opts.Hosts), newOrigins(&p, opts.Origins), newKeys(&p, opts.Keys)
	if (g.hosts.any || g.origins.any) && len(g.keys) == 0 {
		p = append(p, `"*" in Hosts or Origins without Keys would let every web page in`)
	}
	if len(p) > 0 {
		return nil, 0, &art.Error{
			Op: "serve", Err: fmt.Errorf("%w: %s", art.ErrInvalid, strings.Join(p, "; ")), Hint: "correct the HandlerOptions",
		}
	}
	return g, maxBody, nil
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

// ServeHTTP implements [http.Handler].
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, release := g.limited(w, r)
	defer release()
	if err := g.hosts.check(r); err != nil {
		fail(g.logger, w, r, err)
		return
	}
	if err := g.origins.check(w, r); err != nil {
		fail(g.logger, w, r, err)
		return
	}
	if isPreflight(r) { // browsers send it without a key
		answerPreflight(w, r)
		return
	}
	if isProbe(r) || g.keyless != nil && g.keyless(r) { // an orchestrator has no key
		g.routes.ServeHTTP(w, r)
		return
	}
	if err := g.keys.check(w, r); err != nil {
		fail(g.logger, w, r, err)
		return
	}
	g.routes.ServeHTTP(w, g.keys.withOwner(r))
}
