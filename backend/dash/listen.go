package dash

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/goart-dev/art"
)

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
