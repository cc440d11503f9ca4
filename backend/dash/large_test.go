package dash_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
)

// BenchmarkLarge opens the pages of a run of 100,000 trajectories, each for the first time: nothing is kept from a page
// before.
//
//	go test ./backend/dash -run - -bench Large -benchtime 3x
func BenchmarkLarge(b *testing.B) {
	root := b.TempDir()
	store(b, root, "games", "player-1", 10, func(step int) (groups []*art.TrajectoryGroup) {
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
	for _, page := range []struct{ name, path string }{
		{"overview", "/"}, {"run", "/run?run=games/player-1"}, {"groups", "/groups?run=games/player-1"},
		{"sorted groups", "/groups?run=games/player-1&sort=spread&page=9"},
		{"rollouts in time", "/groups?run=games/player-1&view=time"},
		{"group", "/group?run=games/player-1&group=1249&color=logprob"},
		{"scenario at every step", "/scenario?run=games/player-1&group=700"},
		{"search with hits", "/search?run=games/player-1&q=answer+7"},
		{"search without hits", "/search?run=games/player-1&q=nowhere"},
	} {
		b.Run(page.name, func(b *testing.B) {
			for b.Loop() {
				s := serve(b, &dash.Options{Dir: root})
				status, _ := get(b, s, page.path)
				require.Equal(b, http.StatusOK, status)
			}
		})
	}
}
