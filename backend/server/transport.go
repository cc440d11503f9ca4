package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
)

// Transport calls a handler in process, without a socket. The handler runs with the context of the request, which
// carries seeds and recorders.
//
// If the handler comes from [Routes], every request is answered by the given model, whatever model the client names:
// agents often have model names built in.
//
// Responses are not buffered: the handler's writes block until the client reads. As with every transport the client
// must close the body; that, and the end of the request's context, cancel the handler. A panic of the handler is an
// error of the request, or of the body if the response has begun. Trailers are not supported.
func Transport(h http.Handler, model string) http.RoundTripper {
	return &transport{handler: h, model: model}
}

// transport is the [http.RoundTripper] of a handler.
type transport struct {
	handler http.Handler
	model   string
}

// RoundTrip runs the handler and returns once it has sent its headers. It always closes the body of the request.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body := newOnceBody(req.Body)
	if req.URL == nil {
		_ = body.Close() // the error below is the one to report
		return nil, errors.New("server: request without a URL")
	}
	ctx, cancel := context.WithCancel(context.WithValue(req.Context(), pinKey{}, t.model))
	w := newResponseWriter(req, cancel)
	go t.serve(w, serverRequest(ctx, req, body), cancel)
	select {
	case <-w.started:
		return w.response, w.failure
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
}

// serve runs the handler. The end of the context unblocks its reads and writes.
func (t *transport) serve(w *responseWriter, r *http.Request, cancel func()) {
	defer cancel()
	defer func() { _ = r.Body.Close() }() // the error of closing a request body is of no use
	stop := context.AfterFunc(r.Context(), func() {
		w.fail(context.Cause(r.Context()))
		_ = r.Body.Close()
	})
	defer stop()
	defer func() {
		if v := recover(); v != nil {
			err, ok := v.(error)
			if !ok {
				err = fmt.Errorf("%v", v)
			}
			w.fail(fmt.Errorf("server: the handler panicked: %w\n%s", err, debug.Stack()))
		} else if err := context.Cause(r.Context()); err != nil {
			w.fail(err) // a cancelled handler may not have written all of the body
		} else {
			w.finish()
		}
	}()
	t.handler.ServeHTTP(w, r)
}

// serverRequest converts a client's request to a server's. The original is not changed.
func serverRequest(ctx context.Context, req *http.Request, body io.ReadCloser) *http.Request {
	r := req.Clone(ctx)
	r.Body, r.GetBody = body, nil
	r.RequestURI = req.URL.RequestURI()
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.RemoteAddr = "pipe"
	r.Method, r.Host = cmp.Or(r.Method, http.MethodGet), cmp.Or(r.Host, req.URL.Host)
	if r.Header == nil {
		r.Header = http.Header{}
	}
	return r
}

// onceBody closes a body at most once.
type onceBody struct {
	io.Reader
	close func() error
}

func newOnceBody(body io.ReadCloser) *onceBody {
	if body == nil {
		body = http.NoBody
	}
	return &onceBody{Reader: body, close: sync.OnceValue(body.Close)}
}

func (b *onceBody) Close() error { return b.close() }

// responseWriter is the [http.ResponseWriter] of a [transport]. It turns what a handler writes into an [http.Response].
type responseWriter struct {
	request *http.Request
	header  http.Header
	pipe    *io.PipeWriter
	body    io.ReadCloser
	once    sync.Once     // sets the fields below
	started chan struct{} // closed when they are set
	// One of the two is set.
	response *http.Response
	failure  error
}

// newResponseWriter returns a writer for the response to req. onClose is called when the client closes the body.
func newResponseWriter(req *http.Request, onClose func()) *responseWriter {
	reader, writer := io.Pipe()
	return &responseWriter{
		request: req,
		header:  http.Header{},
		pipe:    writer,
		body:    &responseBody{PipeReader: reader, onClose: onClose},
		started: make(chan struct{}),
	}
}

// Header returns the headers to send. Changes after the first byte have no effect.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader sends the headers. Informational ones (1xx) are dropped; only the first call counts.
func (w *responseWriter) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	w.once.Do(func() {
		w.response = &http.Response{
			Status:     strconv.Itoa(status) + " " + http.StatusText(status),
			StatusCode: status,
			Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header:        w.header.Clone(),
			Body:          w.body,
			ContentLength: -1,
			Request:       w.request,
		}
		if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil {
			w.response.ContentLength = n
		}
		close(w.started)
	})
}

// Write sends the headers, then a piece of the body. It blocks until the client has read it. A response to HEAD has no
// body.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.request.Method == http.MethodHead {
		return len(data), nil
	}
	return w.pipe.Write(data)
}

// Flush sends the headers. The body is not buffered.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

func (w *responseWriter) finish() {
	w.WriteHeader(http.StatusOK)
	_ = w.pipe.Close() // never fails
}

// fail ends the request with an error, or the body if the response has begun.
func (w *responseWriter) fail(err error) {
	w.once.Do(func() {
		w.failure = err
		close(w.started)
	})
	_ = w.pipe.CloseWithError(err) // never fails
}

// responseBody is the client's end of the body.
type responseBody struct {
	*io.PipeReader
	onClose func()
}

// Close cancels the handler.
func (b *responseBody) Close() error {
	b.onClose()
	return b.PipeReader.Close()
}
