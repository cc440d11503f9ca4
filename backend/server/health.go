package server

import (
	"context"
	"net/http"
)

// The paths that need no key: those of probes.
const (
	healthPath = "/health"
	readyPath  = "/readyz"
)

// isProbe reports whether a request asks only whether the server is there.
func isProbe(r *http.Request) bool { return r.URL.Path == healthPath || r.URL.Path == readyPath }

// health serves an empty response for as long as the process answers.
func (h *handler) health(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// ready serves an empty response when requests can be answered, else status 503 with the reason.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) error {
	if err := h.checkReady(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// checkReady returns why requests cannot be answered.
func (h *handler) checkReady(ctx context.Context) error {
	reason := ""
	if len(h.models.visible(ctx)) == 0 {
		reason = "no model is registered"
	} else if h.Ready != nil {
		if err := h.Ready(ctx); err != nil {
			reason = err.Error()
		}
	}
	if reason == "" {
		return nil
	}
	return notReady(reason)
}
