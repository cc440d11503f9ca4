package wandb

import (
	"testing"

	"github.com/goart-dev/art/internal/secret/secrettest"
)

// TestClient_Secret: the key goes to no other host, and not into errors.
func TestClient_Secret(t *testing.T) {
	secrettest.Check(t, func(t *testing.T, url string) (string, error) {
		_, err := newClient(Options{APIKey: secrettest.Key, BaseURL: url}, "run").resume(t.Context())
		return "", err
	})
}
