package tinker_test

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
	client "github.com/goart-dev/art/backend/tinker"
)

// roundTrip answers requests without a network.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAwait_Held: a result that takes long is waited for while polls are held, as SkyRL's server holds them for up to
// five minutes, if the service answers heartbeats; one that does not is given up.
func TestAwait_Held(t *testing.T) {
	for name, alive := range map[string]bool{"a slow service": true, "a dead service": false} {
		t.Run(name, func(t *testing.T) {
			tokens, dir := words(t), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				service := roundTrip(func(r *http.Request) (*http.Response, error) {
					answer, status := "{}", http.StatusOK
					switch path.Base(r.URL.Path) {
					case "create_session":
						answer = `{"session_id":"session_1"}`
					case "session_heartbeat":
						if !alive {
							status = http.StatusServiceUnavailable
						}
					case "create_model", "save_weights_for_sampler":
						answer = `{"request_id":"1"}`
					case "retrieve_future":
						if time.Since(began) < 20*time.Minute {
							<-r.Context().Done()
							return nil, r.Context().Err()
						}
						answer = `{"model_id":"model_1","sampling_session_id":"sampling_1"}`
					}
					return &http.Response{
						StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r,
					}, nil
				})
				b, err := client.Open(t.Context(), &client.Options{
					BaseURL: "http://service", Tokenizer: tokens, Dir: dir, HTTPClient: &http.Client{Transport: service},
				})
				if err != nil {
					t.Fatal(err)
				}
				err = art.NewModel("player", &art.ModelOptions{Base: "org/fake"}).Register(t.Context(), b)
				if alive && err != nil || !alive && !errors.Is(err, client.ErrService) {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
