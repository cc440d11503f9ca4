package track_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/track"
)

// A request is made again after a status that may pass, and not after others.
func TestPostJSON_Again(t *testing.T) {
	for status, want := range map[int]int{500: 3, 429: 3, 400: 1} {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls++
			w.WriteHeader(status)
		}))
		require.ErrorContains(t, track.PostJSON(t.Context(), server.URL, nil, map[string]any{}), "POST")
		require.Equal(t, want, calls)
		server.Close()
	}
}
