package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// completion asks a model for replies. piece is nil unless they are wanted piece by piece.
type completion func(ctx context.Context, piece func(art.ChoicePiece) error) ([]*art.ChatResponse, error)

// answer is how a request for replies is answered: with a stream of events, or with one body.
type answer struct {
	model  *art.Model
	n      int // replies
	each   int // replies to each prompt; 0: all are to one
	ask    completion
	stream wire.Stream // nil for one body
	body   func(replies []*art.ChatResponse) (any, error)
}

// answer answers a request. After an error nothing has been sent.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, a *answer) error {
	a.ask = h.observed(a)
	if ask := a.ask; h.Used != nil {
		a.ask = func(ctx context.Context, piece func(art.ChoicePiece) error) ([]*art.ChatResponse, error) {
			replies, err := ask(ctx, piece)
			if err == nil {
				h.Used(ctx, wire.AddUsage(replies, cmp.Or(a.each, a.n)))
			}
			return replies, err
		}
	}
	if a.stream != nil {
		return h.sendStream(w, r, a)
	}
	replies, err := a.ask(r.Context(), nil)
	if err != nil {
		return err
	}
	body, err := a.body(replies)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, body)
}

// sendStream answers with events. An error before the first of them has an HTTP status, one after it is an event.
func (h *handler) sendStream(w http.ResponseWriter, r *http.Request, a *answer) error {
	out := eventWriter{w: w, control: http.NewResponseController(w)}
	defer func() { _ = out.control.SetWriteDeadline(time.Time{}) }() // the connection may serve further requests
	replies, err := a.ask(r.Context(), func(p art.ChoicePiece) error {
		events, err := a.stream.Piece(p)
		if err != nil {
			return err
		}
		return out.send(events)
	})
	switch {
	case err == nil:
		err = out.send(a.stream.End(replies))
	case out.started && r.Context().Err() == nil:
		logFailure(h.Logger, r, err)
		err = out.send(a.stream.Fail(wire.AsError(err)))
	}
	if out.started {
		return nil // an error to write says that the client has gone, and nobody can be told
	}
	return err
}

// writeTimeout bounds how long a client may take to read an event: one that does not read must not keep its reply.
const writeTimeout = time.Minute

// eventWriter sends server-sent events.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	started bool
}

func (e *eventWriter) send(events []wire.Event) error {
	if len(events) == 0 {
		return nil
	}
	data, err := wire.EncodeEvents(events)
	if err != nil {
		return err
	}
	if !e.started {
		e.started = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-cache")
		e.w.WriteHeader(http.StatusOK)
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every ResponseWriter supports it
	if _, err := e.w.Write(data); err != nil {
		return err
	}
	_ = e.control.Flush() // not every ResponseWriter supports it, and such a one does not buffer
	return nil
}

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

func logFailure(logger *slog.Logger, r *http.Request, err error) {
	if wire.AsError(err).Status == http.StatusInternalServerError {
		logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
	}
}

// refused is the error of a request that the client has to change.
func refused(status int, code, format string, args ...any) *wire.Error {
	return &wire.Error{Status: status, Message: fmt.Sprintf(format, args...), Type: wire.TypeInvalid, Code: code}
}

// unavailable is the error of a request that can be sent again after some seconds.
func unavailable(status int, code string, seconds int, format string, args ...any) *wire.Error {
	return &wire.Error{
		Status: status, Message: fmt.Sprintf(format, args...), Type: wire.TypeInternal, Code: code, RetryAfter: seconds,
	}
}

// invalidOptions is the error of options of Go that have problems.
func invalidOptions(op, options string, problems []string) error {
	return &art.Error{
		Op: op, Err: fmt.Errorf("%w: %s", art.ErrInvalid, strings.Join(problems, "; ")), Hint: "correct the " + options,
	}
}

// sendJSON sends a JSON body. After an error nothing has been sent.
func sendJSON(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // an error says that the client has gone, and nobody can be told
	return nil
}
