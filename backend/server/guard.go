package server

import (
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
	bodies  budget
	running budget        // requests
	timeout time.Duration // for a body to arrive
	routes  http.Handler
	refuse  func(http.ResponseWriter, *http.Request, error)
}

// Handler serves [Routes] to the clients that opts admit. cfg and opts may be nil. opts.MaxBody replaces cfg.MaxBody.
// Invalid options are an [art.ErrInvalid] that lists all problems.
func Handler(models Models, cfg *Config, opts *art.HandlerOptions) (http.Handler, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	g, maxBody, err := newGuard(opts)
	if err != nil {
		return nil, err
	}
	c.MaxBody = maxBody
	g.routes = Routes(models, &c)
	g.refuse = func(w http.ResponseWriter, r *http.Request, err error) { fail(c.Logger, w, r, err) }
	return g, nil
}

// Guard admits to next the clients that [Handler] would admit: by Host, Origin and key. Requests without a key reach
// next at /health and /readyz only. refuse answers the others; [Status] is the status of its error. opts may be nil;
// invalid ones are an [art.ErrInvalid] that lists all problems.
func Guard(
	next http.Handler, opts *art.HandlerOptions, refuse func(http.ResponseWriter, *http.Request, error),
) (http.Handler, error) {
	g, maxBody, err := newGuard(opts)
	if err != nil {
		return nil, err
	}
	g.refuse = refuse
	g.routes = http.MaxBytesHandler(next, maxBody)
	return g, nil
}

// Status is the HTTP status of an error that [Guard] hands to refuse.
func Status(err error) int { return wire.AsError(err).Status }

// newGuard returns a guard without routes, and the limit of a body.
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
	g.running.limit = positive(&p, "MaxRequests", int64(opts.MaxRequests), defaultMaxRequests)
	c.MaxChoices = int(positive(&p, "MaxChoices", int64(opts.MaxChoices), defaultMaxChoices))
	c.MaxTokens = int(positive(&p, "MaxTokens", int64(opts.MaxTokens), 0))
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
	if isProbe(r) { // of an orchestrator, which has no key
		g.routes.ServeHTTP(w, r)
		return
	}
	if err := g.keys.check(w, r); err != nil {
		g.refuse(w, r, err)
		return
	}
	if !g.running.take(1) {
		fail(g.logger, w, r, tooManyRequests(g.running.limit))
		return
	}
	defer g.running.release(1)
	g.routes.ServeHTTP(w, g.keys.withOwner(r))
}
