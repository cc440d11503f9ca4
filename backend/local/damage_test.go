package local

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestTrain_RunDeleted: a program whose run was deleted at step 1 made its folders again, lost steps 0 and 1, and ended well.
func TestTrain_RunDeleted(t *testing.T) {
	b := open(t, t.TempDir())
	m := trained(t, b, "m", nil)
	dir, err := b.Dir(m)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, nil)
	require.ErrorIs(t, err, art.ErrStorage)
	require.ErrorContains(t, err, dir)
	require.ErrorIs(t, m.Log(t.Context(), "val", groups, nil), art.ErrStorage)
	require.Equal(t, 1, m.Step())
	require.NoDirExists(t, dir)
}
