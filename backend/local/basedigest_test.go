package local

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSameBase_BuiltIn: a run on the built-in model is not continued on another one that a later version brings.
func TestSameBase_BuiltIn(t *testing.T) {
	at, err := new(Backend).locate(t.Context(), "tiny")
	require.NoError(t, err)
	digest, err := at.digest()
	require.NoError(t, err)
	require.Len(t, digest, 64)
	now := description{Base: "tiny", SHA256: digest}
	require.True(t, now.sameBase(now))
	require.False(t, description{Base: "tiny", SHA256: "of another model"}.sameBase(now))
	require.True(t, description{Base: "tiny"}.sameBase(now), "begun before it was recorded")
	require.False(t, description{Base: "folder"}.sameBase(now))
}
