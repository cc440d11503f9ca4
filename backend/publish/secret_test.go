package publish_test

import (
	"testing"

	"github.com/goart-dev/art/backend/publish"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// TestTargets_Secret: a token goes to no other host, and not into errors.
func TestTargets_Secret(t *testing.T) {
	for name, open := range map[string]func(url string) (publish.Target, error){
		"hub": func(url string) (publish.Target, error) {
			return publish.Hub(&publish.HubOptions{Repo: "me/model", Token: secrettest.Key, BaseURL: url})
		},
		"W&B": func(url string) (publish.Target, error) {
			return publish.Wandb(&publish.WandbOptions{APIKey: secrettest.Key, BaseURL: url})
		},
	} {
		t.Run(name, func(t *testing.T) {
			secrettest.Check(t, func(t *testing.T, url string) (string, error) {
				target, err := open(url)
				if err != nil {
					t.Fatal(err)
				}
				return "", target.Publish(t.Context(), checkpoint(t))
			})
		})
	}
}
