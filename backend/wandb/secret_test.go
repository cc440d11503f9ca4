package wandb_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/wandb"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// TestRegister_Secret: the key goes to no other host, and not into errors and logs.
func TestRegister_Secret(t *testing.T) {
	secrettest.Check(t, func(t *testing.T, url string) (string, error) {
		var log strings.Builder
		b, err := wandb.Open(t.Context(), &wandb.Options{
			BaseURL: url, Key: secrettest.Key, Dir: t.TempDir(), RetryTime: time.Minute,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		began := time.Now()
		err = art.NewModel("player", &art.ModelOptions{Base: "org/base"}).Register(t.Context(), b)
		if time.Since(began) > 20*time.Second {
			t.Error("what will not change was tried again")
		}
		return log.String(), err
	})
}
