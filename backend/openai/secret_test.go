package openai_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// TestComplete_Secret: a key, and a header of the options, go to no other host, and not into errors and logs.
func TestComplete_Secret(t *testing.T) {
	for _, o := range []openai.Options{
		{Key: secrettest.Key}, {Headers: http.Header{"X-Team": {secrettest.Key}}},
	} {
		secrettest.Check(t, func(t *testing.T, url string) (string, error) {
			var log strings.Builder
			o.BaseURL, o.Dir, o.Backoff = url, t.TempDir(), time.Millisecond
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			b, err := openai.Open(t.Context(), &o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			m := art.NewModel("m", &art.ModelOptions{Base: "gpt"})
			if err := m.Register(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			_, err = m.Chat(t.Context(), art.NewTrajectory(art.User("u")), nil)
			return log.String(), err
		})
	}
}
