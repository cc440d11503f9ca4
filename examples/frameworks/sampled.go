package frameworks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/goart-dev/art"
)

// sampledBy decides how replies are sampled, whatever an agent asks for: some frameworks always send a temperature of
// their own. It also notes when the model fails.
type sampledBy struct {
	next   http.RoundTripper
	opts   *art.ChatOptions
	failed atomic.Bool // with a status of 500 or more, or without an answer
}

// RoundTrip implements [http.RoundTripper].
func (s *sampledBy) RoundTrip(r *http.Request) (*http.Response, error) {
	r, err := s.with(r)
	if err != nil {
		return nil, err
	}
	response, err := s.next.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		s.failed.Store(true)
	}
	return response, err
}

// with returns the request with the settings of the run.
func (s *sampledBy) with(r *http.Request) (*http.Request, error) {
	if r.Body == nil {
		return r, nil
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, fmt.Errorf("the body of a request: %w", err)
	}
	delete(body, "temperature")
	if s.opts != nil && s.opts.Temperature != nil {
		body["temperature"] = fmt.Append(nil, *s.opts.Temperature)
	}
	if s.opts != nil && s.opts.MaxTokens != nil {
		body["max_tokens"] = fmt.Append(nil, *s.opts.MaxTokens)
		delete(body, "max_completion_tokens")
	}
	if text, err = json.Marshal(body); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return r, nil
}
