package dash_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// TestOverview_Empty: runs without values of the metric, such as a judge's, are neither ticked nor take the place of
// those that have some, unless they are asked for.
func TestOverview_Empty(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "trained", 2, stepGroups)
	store(t, root, "games", "validated", 0, stepGroups)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} { // the newest stand first
		r, err := runs.Open(root, "games", "judge-"+name, nil)
		require.NoError(t, err)
		require.NoError(t, r.WriteModel(rundir.Description{Name: "judge-" + name, Project: "games", Base: "tiny",
			Frozen: true}))
		require.NoError(t, r.Commit(0, func(string) error { return nil }))
		require.NoError(t, r.Close())
	}
	s := serve(t, &dash.Options{Dir: root})
	ticked := func(path string) (names []string) {
		_, body := get(t, s, path)
		for _, tag := range strings.Split(body, "<input ")[1:] {
			tag, _, _ = strings.Cut(tag, ">")
			if value, ok := strings.CutPrefix(tag, `type="checkbox" form="compare" name="run" value="`); ok &&
				strings.Contains(tag, " checked") {
				name, _, _ := strings.Cut(value, `"`)
				names = append(names, name)
			}
		}
		return names
	}
	require.Equal(t, []string{"games/trained"}, ticked("/"))
	require.ElementsMatch(t, []string{"games/trained", "games/validated"}, ticked("/?metric=val/reward"))
	require.Equal(t, []string{"games/judge-c"}, ticked("/?run=games/judge-c"))
}
