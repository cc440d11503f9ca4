package local

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestRegister_WarmUp: programs are compiled before Register returns if that is wanted, and replies are the same.
func TestRegister_WarmUp(t *testing.T) {
	replies := map[bool]*art.Sample{}
	for _, warm := range []bool{false, true} {
		var log strings.Builder
		b, err := Open(t.Context(), &Options{
			Dir: t.TempDir(), Slots: 2, Context: 32, WarmUp: warm, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		m := art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		require.Equal(t, warm, strings.Contains(log.String(), `msg="programs compiled" model=m`), log.String())
		reply, err := m.Chat(t.Context(), art.NewTrajectory(art.User("yes or no")), nil)
		require.NoError(t, err)
		replies[warm] = reply.Sample
		require.NoError(t, b.Close())
	}
	require.Equal(t, replies[false].Logprobs, replies[true].Logprobs)
}
