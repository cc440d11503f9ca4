package dash_test

import (
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
)

var large = flag.Bool("large", false, "open the pages of a run of 100,000 trajectories, and log how long it takes")

// TestLarge: go test ./backend/dash -run Large -large -v
func TestLarge(t *testing.T) {
	if !*large {
		t.Skip("without -large")
	}
	root := t.TempDir()
	began := time.Now()
	store(t, root, "games", "player-1", 10, func(step int) (groups []*art.TrajectoryGroup) {
		for i := range 1250 {
			g := &art.TrajectoryGroup{}
			for j := range 8 {
				question, answer := fmt.Sprint("question ", i), fmt.Sprint("answer ", j)
				g.Trajectories = append(g.Trajectories, trajectory(float64(j%3), step, question, answer))
			}
			groups = append(groups, g)
		}
		return groups
	})
	t.Logf("stored in %v", time.Since(began))
	s := serve(t, &dash.Options{Dir: root})
	for _, path := range []string{"/", "/run?run=games/player-1", "/groups?run=games/player-1",
		"/groups?run=games/player-1&sort=spread&page=9", "/group?run=games/player-1&group=1249&color=logprob",
		"/groups?run=games/player-1&view=time", "/scenario?run=games/player-1&group=700",
		"/search?run=games/player-1&q=answer+7", "/search?run=games/player-1&q=nowhere"} {
		began := time.Now()
		status, body := get(t, s, path)
		require.Equal(t, http.StatusOK, status)
		t.Logf("%-55s %8v  %4d KB", path, time.Since(began).Round(time.Millisecond), len(body)>>10)
	}
}
