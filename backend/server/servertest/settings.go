package servertest

import (
	"os"
	"testing"
)

// Settings are how many rollouts of how many turns a test of a client plays: 200 of 20 when the environment variable
// ART_ROLLOUTS is "full", else fewer.
func Settings(t *testing.T) (rollouts, turns int) {
	if os.Getenv("ART_ROLLOUTS") == "full" && !testing.Short() {
		return 200, 20
	}
	t.Log("ART_ROLLOUTS=full plays 200 rollouts of 20 turns")
	return 16, 10
}
