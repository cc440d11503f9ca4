package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/metrics"
	"github.com/goart-dev/art/backend/server/tinker"
	"github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/grpo/dataset"
	"github.com/goart-dev/art/internal/quantity"
)

// dashPath is where the page about the runs is.
const dashPath = "/dash/"

// host is the server of the verb serve.
type host struct {
	backend *local.Backend
	http    *http.Server
	page    *dash.Handler // of the runs
	metrics *metrics.Metrics
	gate    server.Gate
	began   time.Time
	closers []func() error // of what open has made, the first last

	tinker *tinker.Server // nil without --train
	wandb  *wandb.Server  // nil without --train
	bases  []string       // the names of its base models

	rollouts *server.Rollouts // nil: none are recorded
	failed   chan error       // why they could not be written
}

// open makes a server without models, which refuses requests.
func (o *serveOptions) open(stderr io.Writer) (h *host, err error) {
	logger := warnings(stderr)
	h = &host{failed: make(chan error, 1), metrics: metrics.New(), began: time.Now()}
	h.gate.Close("the models are being loaded")
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if o.rollouts != "" {
		if err = h.record(o.rollouts); err != nil {
			return h, err
		}
	}
	dir := o.root
	if o.train == "" { // the registered models are not kept
		if dir, err = os.MkdirTemp("", "art-"); err != nil {
			return h, err
		}
		h.closers = append(h.closers, func() error { return os.RemoveAll(dir) })
	}
	o.Dir, o.Progress, o.Logger = dir, stderr, logger
	o.Rollouts, o.Metrics = h.rollouts, h.metrics
	if h.backend, err = local.Open(context.Background(), &o.Options); err != nil {
		return h, err
	}
	h.closers = append(h.closers, h.backend.Close)
	var routes http.Handler
	if o.train != "" {
		routes, err = h.openTinker(o, logger)
	} else if routes, err = h.backend.Handler(o.handlerOptions()); err != nil {
		err = fmt.Errorf("--key, --hosts, --origins: %w", err)
	}
	if err != nil {
		return h, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", h.gate.Handler(routes))
	if err = h.handleOperator(mux, o, logger); err != nil {
		return h, err
	}
	if o.train == "" { // it would show the runs of tenants to one another
		if h.page, err = dash.New(&dash.Options{Dir: runsRoot(), Access: o.handlerOptions(), Tokens: cachedTokens(),
			Logger: logger}); err != nil {
			return h, err
		}
		h.closers = append(h.closers, h.page.Close)
		mux.Handle(dashPath, http.StripPrefix(strings.TrimSuffix(dashPath, "/"), h.page))
	}
	// The handler limits the time of bodies and of the writes of a stream; how long a reply takes is not limited.
	h.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: o.headerTimeout, IdleTimeout: o.idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	return h, nil
}

// record appends the groups of rollouts to a file as they are completed.
func (h *host) record(path string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("--rollouts: %w", err)
	}
	if h.rollouts, err = server.NewRollouts(nil); err != nil {
		return errors.Join(err, file.Close())
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		for {
			group, err := h.rollouts.Next(context.Background())
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				err = dataset.WriteJSONL(file, group)
			}
			if err != nil {
				h.failed <- fmt.Errorf("--rollouts: %w", err)
				return
			}
		}
	}()
	h.closers = append(h.closers, func() error {
		h.rollouts.Close()
		<-written
		err := file.Close()
		select {
		case failed := <-h.failed: // while the last groups were written
			return errors.Join(err, failed)
		default:
			return err
		}
	})
	return nil
}

// load registers the models, admits requests, and returns the names.
func (h *host) load(ctx context.Context, list []servedModel, o *serveOptions) (names []string, err error) {
	for _, s := range list {
		opts := &art.ModelOptions{Base: s.source.path, Adapter: s.source.adapter, ToolFormat: o.toolFormat}
		opts.Frozen = s.source.adapter == "" && !o.logprobs && h.rollouts == nil
		if err := art.NewModel(s.name, opts).Register(ctx, h.backend); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		names = append(names, s.name)
	}
	h.gate.Open()
	return append(names, h.bases...), nil
}

// listen serves until the server is closed.
func (h *host) listen(listener net.Listener, certificate *tls.Certificate) error {
	if certificate == nil {
		return h.http.Serve(listener)
	}
	h.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	return h.http.ServeTLS(listener, "", "")
}

// drain refuses new requests, and gives those that are running some time to end. An error counts the rest.
func (h *host) drain(timeout time.Duration, stderr io.Writer) error {
	h.gate.Close("the server is shutting down")
	if h.page != nil {
		_ = h.page.Close() // its streams would never end; it has no error
	}
	if n := h.gate.Running(); n > 0 {
		fmt.Fprintf(stderr, "art: being answered: %s; the server ends in %v at most\n", quantity.Of(n, "request"), timeout)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := h.gate.Wait(ctx)
	if err != nil {
		err = fmt.Errorf("after --drain %v: %w", timeout, err)
	}
	if h.http.Shutdown(ctx) != nil { // connections are in use still: of these requests, or of slow clients
		return errors.Join(err, h.http.Close())
	}
	return err
}

// close releases what open has made.
func (h *host) close() (err error) {
	for _, f := range slices.Backward(h.closers) {
		err = errors.Join(err, f())
	}
	return err
}

// start is what a server says of itself when it can be called.
type start struct {
	address     net.Addr
	certificate *tls.Certificate // nil: there is no TLS
	file        string           // of the certificate
	models      []string
	tinker      bool   // the models are bases of the Tinker API
	generated   bool   // the key is new, and not known to anyone
	page        string // link to the page of the runs
	tenants     bool   // clients have the keys of tenants
	operator    string // the operator's key, if it is new
}

// text has the address, the models, the key if it is new, and a command to try it. A key that was given is not
// repeated: the text may go into a log.
func (s *start) text(key string) string {
	var b strings.Builder
	root := s.root()
	names := strings.Join(s.models, ", ")
	if s.tinker {
		fmt.Fprintf(&b, "training %s for clients of Tinker at %s and of W&B Training at %s/v1\n", names, root, root)
	} else {
		fmt.Fprintf(&b, "serving %s at %s/v1, for Anthropic's clients at %s\n", names, root, root)
	}
	switch {
	case s.generated:
		fmt.Fprintf(&b, "key: %s (a new one; choose your own with $%s)\n", key, keyVariable)
	case s.tenants:
		key = "KEY_OF_A_TENANT"
	default:
		key = "$" + keyVariable
	}
	if s.operator != "" {
		fmt.Fprintf(&b, "operator's key: %s (a new one; choose your own with $%s)\n", s.operator, operatorVariable)
	}
	if s.certificate == nil && !s.loopback() {
		b.WriteString("warning: without --tls-cert the key and all texts cross the network in the clear\n")
	}
	if s.page != "" {
		fmt.Fprintf(&b, "runs at %s\n", s.page)
	}
	if s.tinker {
		fmt.Fprintf(&b, "try it:\nTINKER_BASE_URL=%s TINKER_API_KEY=%s python your_program.py\n", root, key)
		return b.String()
	}
	b.WriteString("try it:\ncurl ")
	if s.certificate != nil {
		b.WriteString("--cacert " + shellQuote(s.file) + " ")
	}
	body, _ := json.Marshal(map[string]any{ // strings can always be encoded
		"model": s.models[0], "messages": []map[string]string{{"role": "user", "content": "Hello"}}, "max_tokens": 64,
	})
	fmt.Fprintf(&b, "%s/v1/chat/completions -H \"Authorization: Bearer %s\" \\\n", root, key)
	fmt.Fprintf(&b, "  -H 'Content-Type: application/json' -d %s\n", shellQuote(string(body)))
	return b.String()
}

// root is the URL under which this machine reaches the server.
func (s *start) root() string {
	host, port, _ := net.SplitHostPort(s.address.String()) // the address of a listener has both
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if s.certificate == nil {
		return "http://" + net.JoinHostPort(host, port)
	}
	return "https://" + net.JoinHostPort(s.certifiedHost(host), port)
}

// certifiedHost returns a name that the certificate is valid for, preferably that of the address.
func (s *start) certifiedHost(host string) string {
	leaf := s.certificate.Leaf
	for _, name := range append([]string{host, "localhost"}, leaf.DNSNames...) {
		if leaf.VerifyHostname(name) == nil {
			return name
		}
	}
	return host
}

// loopback reports whether only this machine reaches the server.
func (s *start) loopback() bool {
	host, _, _ := net.SplitHostPort(s.address.String())
	return net.ParseIP(host).IsLoopback()
}

// plainWord is what no shell reads as anything else.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellQuote quotes a word for a POSIX shell, if it has to be quoted.
func shellQuote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
