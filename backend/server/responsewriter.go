package server

import (
	"io"
	"net/http"
	"strconv"
	"sync"
)

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
		w.response = w.newResponse(status)
		close(w.started)
	})
}

// newResponse returns the response with the headers as they are now.
func (w *responseWriter) newResponse(status int) *http.Response {
	resp := &http.Response{
		Status:     strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode: status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.header.Clone(),
		Body:          w.body,
		ContentLength: -1,
		Request:       w.request,
	}
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = n
	}
	return resp
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

// finish ends the body.
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
