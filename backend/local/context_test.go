package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestComplete_ContextHint: below the limit of the model the hint names the option and how far it can be raised; at the
// limit, where raising it is an error, it names the limit.
func TestComplete_ContextHint(t *testing.T) {
	limit := tinyConfig(t).MaxPositions
	for context, want := range map[int]string{
		128: fmt.Sprintf("raise Context of local.Options, up to the model's limit of %d", limit),
		0:   fmt.Sprintf("fewer or shorter messages: %d tokens are the limit of the model", limit),
	} {
		_, m, err := register(t, 8<<30, Options{Slots: 1, Context: context}, nil)
		require.NoError(t, err)
		_, err = m.Complete(t.Context(), ask(strings.Repeat("2+2? ", limit)), nil)
		require.ErrorIs(t, err, art.ErrContextLength)
		require.ErrorContains(t, err, want)
		require.Equal(t, context == 128, strings.Contains(err.Error(), "Options"))
	}
}
