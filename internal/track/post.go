package track

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art/internal/secret"
)

// tries is how often a request is made when the service is busy or has an error.
const tries = 3

var poster = secret.Client(&http.Client{Transport: newTransport()})

// PostJSON sends a value as JSON, as [Post] does.
func PostJSON(ctx context.Context, url string, headers map[string]string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return Post(ctx, url, headers, data)
}

// Post sends JSON. It tries again after a failure that may pass: no answer, status 429, 500 and above.
func Post(ctx context.Context, url string, headers map[string]string, data []byte) error {
	for try := 1; ; try++ {
		again, err := postOnce(ctx, url, headers, data)
		if err == nil || !again || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * 250 * time.Millisecond):
		}
	}
}

func postOnce(ctx context.Context, url string, headers map[string]string, data []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res, err := poster.Do(req)
	if err != nil {
		return !errors.As(err, new(*secret.RedirectError)), fmt.Errorf("POST %s: %w", place(req), secret.WithoutURL(err))
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 512))
	if res.StatusCode/100 == 2 {
		return false, nil
	}
	again = res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500
	return again, fmt.Errorf("POST %s: %s: %s", place(req), res.Status, bytes.TrimSpace(text))
}

// place is where a request goes, without what may be a key.
func place(req *http.Request) string { return req.URL.Scheme + "://" + req.URL.Host + req.URL.Path }

const (
	// maxIdle is how many unused connections to a host are kept, for how long at most.
	maxIdle     = 16
	maxIdleTime = 90 * time.Second
	// buffered is more than most requests have, so that they are one write.
	buffered = 64 << 10
)

// transport makes requests on the goroutine of its caller, which writes and reads a connection in turn. That takes half
// of the CPU time of [http.Transport], whose connections have two goroutines, and a tracker makes a request for each
// completion. It speaks HTTP/1.1; requests that go through a proxy are left to other.
type transport struct {
	other http.RoundTripper
	proxy func(*http.Request) (bool, error)
	tls   *tls.Config // nil is the default

	mu   sync.Mutex
	idle map[string][]*connection // by [secret.Origin]; the newest last
}

type connection struct {
	net.Conn
	key  string
	in   *bufio.Reader
	out  *bufio.Writer
	used time.Time
}

func newTransport() *transport {
	return &transport{
		other: http.DefaultTransport, idle: map[string][]*connection{},
		proxy: func(r *http.Request) (bool, error) {
			url, err := http.ProxyFromEnvironment(r)
			return url != nil, err
		},
	}
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	through, err := t.proxy(req)
	if err != nil || through {
		return t.other.RoundTrip(req)
	}
	if c := t.take(secret.Origin(req.URL)); c != nil {
		res, began, err := t.exchange(c, req)
		if err == nil || began || req.Context().Err() != nil || req.GetBody == nil {
			return res, err
		}
		// The host has closed a connection that was not used for a while.
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	c, err := t.dial(req)
	if err != nil {
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	res, _, err := t.exchange(c, req)
	return res, err
}

func (t *transport) dial(req *http.Request) (*connection, error) {
	key := secret.Origin(req.URL)
	_, address, _ := strings.Cut(key, "://")
	var conn net.Conn
	var err error
	if req.URL.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: t.tls}).DialContext(req.Context(), "tcp", address)
	} else {
		conn, err = new(net.Dialer).DialContext(req.Context(), "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return &connection{
		Conn: conn, key: key, in: bufio.NewReader(conn), out: bufio.NewWriterSize(conn, buffered),
	}, nil
}

// take removes the newest unused connection to a host, and closes those that were not used for long. nil is none.
func (t *transport) take(key string) *connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.DeleteFunc(t.idle[key], func(c *connection) bool {
		old := time.Since(c.used) > maxIdleTime
		if old {
			_ = c.Close()
		}
		return old
	})
	if len(list) == 0 {
		delete(t.idle, key)
		return nil
	}
	c := list[len(list)-1]
	t.idle[key] = list[:len(list)-1]
	return c
}

// keep takes a connection back.
func (t *transport) keep(c *connection) {
	c.used = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle[c.key]) >= maxIdle {
		_ = c.Close()
		return
	}
	t.idle[c.key] = append(t.idle[c.key], c)
}

// exchange writes a request and reads the head of its response. began says that the host has answered something. After
// an error the connection is closed.
func (t *transport) exchange(c *connection, req *http.Request) (res *http.Response, began bool, err error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	res, began, err = c.exchange(req)
	if err != nil {
		stop()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, began, errors.Join(err, c.Close())
	}
	res.Body = &body{ReadCloser: res.Body, ctx: ctx, done: func(whole bool) error {
		if whole && !res.Close && stop() {
			t.keep(c)
			return nil
		}
		stop()
		return c.Close()
	}}
	return res, began, nil
}

func (c *connection) exchange(req *http.Request) (res *http.Response, began bool, err error) {
	if err = req.Write(c.out); err == nil {
		err = c.out.Flush()
	}
	if err == nil {
		_, err = c.in.Peek(1)
	}
	if err != nil {
		return nil, false, err
	}
	for {
		res, err = http.ReadResponse(c.in, req)
		if err != nil || res.StatusCode >= http.StatusOK || res.StatusCode == http.StatusSwitchingProtocols {
			return res, true, err
		}
	}
}

// body is the body of a response, whose connection is free once it was read to its end.
type body struct {
	io.ReadCloser
	ctx   context.Context
	done  func(whole bool) error
	ended bool
}

func (b *body) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); err == nil {
		return n, nil
	}
	whole := errors.Is(err, io.EOF)
	if cause := context.Cause(b.ctx); cause != nil && !whole {
		err = cause
	}
	_ = b.end(whole)
	return n, err
}

func (b *body) Close() error { return b.end(false) }

func (b *body) end(whole bool) error {
	if b.ended {
		return nil
	}
	b.ended = true
	return b.done(whole)
}
