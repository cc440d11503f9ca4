package openpipe

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/secret/secrettest"
)

// TestTracker_Secret: the key goes to no other host, and not into errors and logs.
func TestTracker_Secret(t *testing.T) {
	secrettest.Check(t, func(t *testing.T, url string) (string, error) {
		var log strings.Builder
		tracker, err := New(&Options{APIKey: secrettest.Key, BaseURL: url, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		ask(t, tracker, 1)
		err = tracker.Close()
		return log.String(), err
	})
}
