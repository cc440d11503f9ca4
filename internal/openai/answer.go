package openai

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
)

// fail answers with an error. Nothing has been sent before: what comes after the first byte cannot fail.
func fail(logger *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	e := asError(err)
	if e.Status == http.StatusInternalServerError {
		logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
	}
	switch {
	case e.RetryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	case e.Status == http.StatusServiceUnavailable:
		w.Header().Set("X-Should-Retry", "false") // a closed backend stays closed, and OpenAI's clients would try again
	}
	if err := sendJSON(w, e.Status, e); err != nil {
		logger.ErrorContext(r.Context(), "error could not be encoded", "error", err)
	}
}

// sendJSON answers with a JSON body. An error means that nothing was sent.
func sendJSON(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	send(w, status, "application/json", data)
	return nil
}

// sendEvents answers with a stream. An error means that nothing was sent.
func sendEvents(w http.ResponseWriter, chunks []*Chunk) error {
	data, err := encodeEvents(chunks)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache")
	send(w, http.StatusOK, "text/event-stream", data)
	return nil
}

// send writes a whole answer. When that fails the client is gone, and there is nobody to tell.
func send(w http.ResponseWriter, status int, contentType string, data []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
