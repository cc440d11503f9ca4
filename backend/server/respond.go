package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/goart-dev/art/internal/wire"
)

// fail sends an error response. Nothing may have been sent before.
func fail(logger *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	e := wire.AsError(err)
	logFailure(logger, r, err)
	switch {
	case e.RetryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	case e.Status == http.StatusServiceUnavailable:
		w.Header().Set("X-Should-Retry", "false") // OpenAI's clients would retry, and a closed backend stays closed
	}
	var body any = e
	if isMessages(r) {
		body = wire.MessagesError{Error: e}
	}
	if err := sendJSON(w, e.Status, body); err != nil {
		logger.ErrorContext(r.Context(), "error could not be encoded", "error", err)
	}
}

// logFailure logs internal errors.
func logFailure(logger *slog.Logger, r *http.Request, err error) {
	if wire.AsError(err).Status == http.StatusInternalServerError {
		logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
	}
}

// sendJSON sends a JSON body. After an error nothing has been sent.
func sendJSON(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	send(w, status, "application/json", data)
	return nil
}

// send writes a complete response. If that fails the client has gone, and nobody can be told.
func send(w http.ResponseWriter, status int, contentType string, data []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
