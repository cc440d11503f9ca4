// Package dash is a web page that shows the runs of a folder while they are trained: rewards and every other metric,
// where the time goes, groups of trajectories side by side, tokens as a heat map. A person can judge there.
//
// In the program that trains, [Start] serves it, and the events make it live:
//
//	page, err := dash.Start("127.0.0.1:0", &dash.Options{Dir: ".art"})
//	defer page.Close()
//	fmt.Println("live page:", page.Link())
//	model := art.NewModel("player", &art.ModelOptions{Events: page.Events()})
//
// [New] is the handler alone, for a server that there is already; mount it with [net/http.StripPrefix]. It needs
// nothing but the run directories, which it watches: art runs dash shows runs of other processes, and of the past.
//
// The page is HTML that the server makes, charts included. It works without JavaScript, which adds updates, readings
// under the pointer and keys. Everything is embedded; the browser makes no request to another host. What agents and
// models wrote is shown as text, never as HTML, with control characters made visible.
//
// Nothing is changed unless it is asked for: [Options].Stars lets people star trajectories, [Options].Judge give
// rewards. docs/dash.md describes the page.
package dash

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/backend/server"
)

// Options of [New] and [Start]. Zero values are the defaults.
type Options struct {
	// Dir is the folder of the runs. Default ".art".
	Dir string
	// Access says who may look: names of the server, origins and keys. With Keys a browser needs [Handler.Link], or one of
	// the keys typed into the page. nil, the default, admits every program that reaches the server by a name of this
	// machine; [Start] then makes a key.
	Access *art.HandlerOptions
	// Tokens returns the bytes of the tokens of a run's model. nil, and an error, show ids in place of texts.
	Tokens func(run *rundir.Run) (func(id int32) []byte, error)
	// Logprobs returns the logprob of each of ids but the first under a step of a run, for the map of how logprobs changed
	// between two steps. nil: there is no such map.
	Logprobs func(ctx context.Context, run *rundir.Run, step int, ids []int32) ([]float32, error)
	// Judge lets people give the rewards of groups. nil: nobody judges.
	Judge *Judge
	// Stars lets people star trajectories. Those of a run are in its folder, in stars.jsonl: examples for art sft.
	Stars bool
	// Interval is the time between two looks at the folder. Default 1 s.
	Interval time.Duration
	// Logger receives internal errors. nil discards them.
	Logger *slog.Logger
}

// Handler serves the page. It is an [http.Handler], to be mounted at a path that ends in a slash.
type Handler struct {
	opts    Options
	store   *store
	session *session
	live    *live
	stars   stars
	guarded http.Handler
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

var _ http.Handler = (*Handler)(nil)

// New returns a handler, which watches the folder until [Handler.Close]. opts may be nil. Invalid options are an error
// that wraps [art.ErrInvalid].
func New(opts *Options) (*Handler, error) {
	h := &Handler{}
	if opts != nil {
		h.opts = *opts
	}
	h.opts.Dir = cmp.Or(h.opts.Dir, ".art")
	h.opts.Interval = cmp.Or(h.opts.Interval, time.Second)
	if h.opts.Interval < 0 {
		err := fmt.Errorf("%w: the interval is %v", art.ErrInvalid, h.opts.Interval)
		return nil, &art.Error{Op: "dash", Err: err, Hint: "set Options.Interval to more than 0, or leave it"}
	}
	if h.opts.Logger == nil {
		h.opts.Logger = slog.New(slog.DiscardHandler)
	}
	h.store = &store{root: h.opts.Dir, runs: map[string]*run{}, indices: map[indexKey]*index{}}
	h.session = newSession(h.opts.Access)
	ctx, stop := context.WithCancel(context.Background())
	h.live, h.stop = newLive(ctx, h.opts.Judge), stop
	var err error
	h.guarded, err = h.session.guard(h.routes(), func(w http.ResponseWriter, r *http.Request, err error) {
		h.failPage(w, r, server.Status(err), err)
	})
	if err != nil {
		stop()
		return nil, err
	}
	h.ended.Go(func() { h.live.watch(ctx, h.store, h.opts.Interval) })
	return h, nil
}

// Close ends the streams of events, so that the server can end. Pages are still served.
func (h *Handler) Close() error {
	h.stop()
	h.ended.Wait()
	return nil
}

// Link returns an address of the page that lets one browser in, once: base is where the handler is mounted, such as
// "http://127.0.0.1:8000/dash/". Without keys it is base.
func (h *Handler) Link(base string) string { return h.session.link(base) }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if name, ok := strings.CutPrefix(r.URL.Path, "/assets/"); ok {
		serveAsset(w, r, name)
		return
	}
	h.session.admit(h.guarded, w, r)
}

// routes are the pages. All are at one level, so that links are relative and the handler can be mounted anywhere.
func (h *Handler) routes() http.Handler {
	mux := http.NewServeMux()
	for path, page := range map[string]func(*http.Request) (*page, error){
		"/{$}": h.overview, "/run": h.runPage, "/groups": h.groupsPage, "/group": h.groupPage, "/search": h.searchPage,
		"/scenario": h.scenarioPage, "/judge": h.judgePage, "/stars": h.starsPage,
	} {
		mux.Handle("GET "+path, h.page(page))
	}
	mux.Handle("GET /text", h.file(h.text))
	mux.Handle("GET /csv", h.file(h.csv))
	mux.HandleFunc("GET /events", h.live.serve)
	mux.Handle("POST /judge", h.post(h.judged))
	mux.Handle("POST /star", h.post(h.starred))
	mux.Handle("GET /", h.page(func(r *http.Request) (*page, error) {
		return nil, notFound("there is no page %q", r.URL.Path)
	}))
	return mux
}

// httpError is an error with a status.
type httpError struct {
	status int
	text   string
}

func (e *httpError) Error() string { return e.text }

func notFound(format string, args ...any) error {
	return &httpError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return &httpError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// statusOf is the status of an error of a page.
func statusOf(err error) int {
	known, ok := errors.AsType[*httpError](err)
	switch {
	case ok:
		return known.status
	case errors.Is(err, art.ErrInvalid):
		return http.StatusBadRequest
	case isMissing(err):
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// Server is a page that is being served; see [Start].
type Server struct {
	*Handler
	http *http.Server
	url  string
	end  chan error
}

// Start serves the page at an address of this machine, such as "127.0.0.1:0" for any free port, until [Server.Close].
// Without keys in opts it makes one, so that other users of the machine need [Server.Link]. opts may be nil.
func Start(addr string, opts *Options) (*Server, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	var access art.HandlerOptions
	if o.Access != nil {
		access = *o.Access
	}
	if len(access.Keys) == 0 {
		access.Keys = []string{rand.Text()}
	}
	o.Access = &access
	h, err := New(&o)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		hint := "choose another address, such as 127.0.0.1:0 for any free port"
		return nil, errors.Join(&art.Error{Op: "dash", Err: err, Hint: hint}, h.Close())
	}
	s := &Server{Handler: h, url: urlOf(listener.Addr()), end: make(chan error, 1)}
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(h.opts.Logger.Handler(), slog.LevelWarn)}
	go func() { s.end <- s.http.Serve(listener) }()
	return s, nil
}

// urlOf is how this machine reaches a listener.
func urlOf(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String() + "/"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// URL returns the address of the page, which asks for the key.
func (s *Server) URL() string { return s.url }

// Link returns an address that lets one browser in, once. Each call makes a new one.
func (s *Server) Link() string { return s.Handler.Link(s.url) }

// Wait returns when the server has ended, with the error that ended it.
func (s *Server) Wait() error {
	err := <-s.end
	s.end <- err
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("dash: %w", err)
}

// Close ends the server.
func (s *Server) Close() error {
	err := s.Handler.Close()
	return errors.Join(err, s.http.Close())
}
