package tinker_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// TestOpen_Secret: the key goes to no other host, and not into errors and logs.
func TestOpen_Secret(t *testing.T) {
	secrettest.Check(t, func(t *testing.T, url string) (string, error) {
		var log strings.Builder
		began := time.Now()
		b, err := client.Open(t.Context(), &client.Options{
			BaseURL: url, Key: secrettest.Key, Tokenizer: words(t), Dir: t.TempDir(), RetryTime: time.Minute,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err == nil {
			_ = b.Close()
		}
		if time.Since(began) > 20*time.Second {
			t.Error("what will not change was tried again")
		}
		return log.String(), err
	})
}
