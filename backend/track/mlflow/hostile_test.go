package mlflow

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/secret/secrettest"
	"github.com/goart-dev/art/internal/track"
)

// TestClient_Secret: a token, and a password, go to no other host, and not into errors.
func TestClient_Secret(t *testing.T) {
	t.Setenv("MLFLOW_TRACKING_USERNAME", "api")
	t.Setenv("MLFLOW_TRACKING_PASSWORD", secrettest.Key)
	for _, token := range []string{secrettest.Key, ""} {
		secrettest.Check(t, func(t *testing.T, url string) (string, error) {
			c := &client{url: url, http: secret.Client(&http.Client{}), authorize: authorization(token)}
			return "", (&run{c: c}).open(t.Context(), "experiment", "run")
		})
	}
}

// TestClient_SecretNumber: what is no number is quoted in the error, but not the token.
func TestClient_SecretNumber(t *testing.T) {
	url := secrettest.Echoing(t, http.StatusOK)
	c := &client{url: url, http: secret.Client(&http.Client{}), authorize: authorization(secrettest.Key)}
	var out struct {
		Message number `json:"message"`
	}
	err := c.call(t.Context(), "x", nil, &out)
	if err == nil || secrettest.Leaks(err.Error()) != "" {
		t.Errorf("error %v", err)
	}
}

// TestRun_EndlessHistory: a history of a metric without an end is an error.
func TestRun_EndlessHistory(t *testing.T) {
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		pages++
		_, _ = w.Write([]byte(`{"metrics": [{"key": "x", "value": 1, "step": 1}], "next_page_token": "again"}`))
	}))
	defer server.Close()
	r := &run{c: &client{url: server.URL, http: server.Client(), authorize: func(*http.Request) {}}}
	if err := r.readMetric(t.Context(), "x", track.Values{}); err == nil || pages != maxPages {
		t.Errorf("%d pages, error %v", pages, err)
	}
}
