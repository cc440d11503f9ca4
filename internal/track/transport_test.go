package track

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// host counts connections, and answers with what it was sent.
type host struct {
	*httptest.Server
	opened atomic.Int32
}

func newHost(t *testing.T, handle http.HandlerFunc) *host {
	h := &host{Server: httptest.NewUnstartedServer(handle)}
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			h.opened.Add(1)
		}
	}
	t.Cleanup(h.Close)
	return h
}

// echo reads everything before it answers: a server may drop what is not read by then.
func echo(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(data)
}

func post(t *testing.T, c *http.Client, url, text string) (string, error) {
	t.Helper()
	res, err := c.Post(url, "text/plain", strings.NewReader(text))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return string(data), err
}

// TestTransport_Echo: answers of all sizes belong to their requests, over one connection, with TLS and without, as the
// standard library's client has them.
func TestTransport_Echo(t *testing.T) {
	for _, secure := range []bool{false, true} {
		h := newHost(t, echo)
		own := newTransport()
		if h.Start(); secure {
			h.Close()
			h = newHost(t, echo)
			h.StartTLS()
			pool := x509.NewCertPool()
			pool.AddCert(h.Certificate())
			own.tls = &tls.Config{RootCAs: pool}
		}
		c := &http.Client{Transport: own}
		for _, size := range []int{0, 1, 5000, 100_000, 3_000_000, 2} {
			text := strings.Repeat("ab", size)
			got, err := post(t, c, h.URL, text)
			require.NoError(t, err)
			require.True(t, got == text, "an echo of %d bytes has %d", len(text), len(got))
		}
		require.EqualValues(t, 1, h.opened.Load(), "one connection is used again")
	}
}

// TestTransport_Concurrent: several callers have a connection each, and the answers to their own requests.
func TestTransport_Concurrent(t *testing.T) {
	h := newHost(t, echo)
	h.Start()
	c := &http.Client{Transport: newTransport()}
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			for range 50 {
				text := strings.Repeat(string(rune('a'+caller)), 1000)
				if got, err := post(t, c, h.URL, text); err != nil || got != text {
					t.Errorf("%d bytes: %v", len(got), err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, h.opened.Load(), int32(8))
}

// TestTransport_ClosedByHost: a connection that the host has closed is not the end of a request, and one that must not
// be used again is not.
func TestTransport_ClosedByHost(t *testing.T) {
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			w.Header().Set("Connection", "close")
		}
		echo(w, r)
	})
	h.Start()
	c := &http.Client{Transport: newTransport()}
	ask := func(path string, opened int32) {
		t.Helper()
		got, err := post(t, c, h.URL+path, path)
		require.NoError(t, err)
		require.Equal(t, path, got)
		require.Equal(t, opened, h.opened.Load())
	}
	ask("/a", 1)
	h.CloseClientConnections()
	ask("/b", 2)
	ask("/last", 2)
	ask("/c", 3)
}

// TestTransport_Unread: a connection whose answer was not read to its end is not used again.
func TestTransport_Unread(t *testing.T) {
	h := newHost(t, echo)
	h.Start()
	c := &http.Client{Transport: newTransport()}
	res, err := c.Post(h.URL, "text/plain", bytes.NewReader(make([]byte, 1<<20)))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	got, err := post(t, c, h.URL, "next")
	require.NoError(t, err)
	require.Equal(t, "next", got)
	require.EqualValues(t, 2, h.opened.Load())
}

// TestTransport_Cancelled: a request ends with its context, while it waits for the answer or reads it, and another one
// is not disturbed.
func TestTransport_Cancelled(t *testing.T) {
	release := make(chan struct{})
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fast" {
			return
		}
		if r.URL.Path == "/half" {
			_, _ = w.Write(make([]byte, 100))
			w.(http.Flusher).Flush()
		}
		<-release
	})
	h.Start()
	defer close(release)
	c := &http.Client{Transport: newTransport()}
	for _, path := range []string{"/slow", "/half"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+path, strings.NewReader("x"))
		require.NoError(t, err)
		res, err := c.Do(req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		require.ErrorIs(t, err, context.DeadlineExceeded, path)
		_, err = post(t, c, h.URL+"/fast", "x")
		require.NoError(t, err)
	}
}

// TestTransport_Interim: answers that come before the answer are passed over.
func TestTransport_Interim(t *testing.T) {
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		echo(w, r)
	})
	h.Start()
	got, err := post(t, &http.Client{Transport: newTransport()}, h.URL, "x")
	require.NoError(t, err)
	require.Equal(t, "x", got)
}

// TestTransport_Proxy: requests that go through a proxy are left to the standard library.
func TestTransport_Proxy(t *testing.T) {
	own := newTransport()
	own.proxy = func(*http.Request) (bool, error) { return true, nil }
	own.other = roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("proxy"))}, nil
	})
	got, err := post(t, &http.Client{Transport: own}, "http://example.test", "x")
	require.NoError(t, err)
	require.Equal(t, "proxy", got)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
