// Package client is what backends share that train at a service.
package client

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
)

// Plain reports whether an adapter has nothing that the protocols cannot say: a choice of layers, ranks and alphas of
// single layers, rsLoRA and DoRA.
func Plain(l art.LoRA) bool {
	return len(l.Targets)+len(l.Ranks)+len(l.Alphas) == 0 && l.TargetPattern == "" && !l.RankStabilized && !l.DoRA
}

// ErrNoBase is the error of a model without a base: which one the service has is not known here.
var ErrNoBase = &art.Error{
	Op: "register", Err: fmt.Errorf("%w: ModelOptions.Base is empty", art.ErrInvalid),
	Hint: "name a base model of the service",
}

// Models are the registered models of a backend, each with an entry of it. Make them with [NewModels].
type Models[E any] struct {
	mu     sync.Mutex
	closed bool
	of     map[*art.Model]E
	order  []*art.Model
}

// NewModels returns no models yet.
func NewModels[E any]() *Models[E] { return &Models[E]{of: map[*art.Model]E{}} }

// Add registers a model. One that is not listed is not in All.
func (l *Models[E]) Add(m *art.Model, e E, listed bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &art.Error{Op: "register", Err: art.ErrClosed, Hint: "open another backend"}
	}
	l.of[m] = e
	if listed {
		l.order = append(l.order, m)
	}
	return nil
}

// Get returns what was registered for a model. An operation of a closed backend is an error.
func (l *Models[E]) Get(op string, m *art.Model) (e E, err error) {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return e, &art.Error{Op: op, Err: art.ErrClosed, Hint: "open another backend"}
	}
	return l.Known(op, m)
}

// Known is Get of a backend that may be closed.
func (l *Models[E]) Known(op string, m *art.Model) (E, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.of[m]
	if !ok {
		return e, &art.Error{Op: op, Err: art.ErrNotRegistered, Hint: "call Register on this backend first"}
	}
	return e, nil
}

// Remove forgets a model.
func (l *Models[E]) Remove(m *art.Model) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, m)
}

// All returns the listed models in the order of their registration.
func (l *Models[E]) All() []*art.Model {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.order)
}

// Close ends the backend. It returns all entries, and false when that was done before.
func (l *Models[E]) Close() (entries []E, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, l.closed = !l.closed, true
	return slices.Collect(maps.Values(l.of)), first
}

// Address parses the address of a service, whose path ends without a slash.
func Address(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: BaseURL is no address of a service", art.ErrInvalid)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%w: BaseURL has a user, a query or a fragment; put the key in Key", art.ErrInvalid)
	}
	return u, nil
}

// RetryAfter is the time that a response asks to wait, up to a minute; 0 when it does not ask.
func RetryAfter(h http.Header) time.Duration {
	s, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || !(s > 0 && s <= 60) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// Wait is the time before a request is sent again after so many failures, from 0: what the service asks for, or a
// random one that grows from half a second to ten.
func Wait(failures int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	longest := min(10*time.Second, time.Second/2<<min(failures, 5))
	return longest - rand.N(longest/4)
}
