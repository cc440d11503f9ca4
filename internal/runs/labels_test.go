package runs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

func TestLabels_Form(t *testing.T) {
	text, err := encodeLabels(map[string]any{"int": 1, "float": 1.0, "big": 1e21, "bytes": "\xff", "none": nil,
		"yes": true, "s": "1"})
	require.NoError(t, err)
	require.Equal(t, `{"big":1e+21,"bytes":{"bytes":"/w=="},"float":1.0,"int":1,"none":null,"s":"1","yes":true}`, *text)
}

// Maps that were nil when they were stored can be written to when they are read: they were nil.
func TestLabels_NilIsReadAsEmpty(t *testing.T) {
	content, err := encodeGroups([]*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{}}}})
	require.NoError(t, err)
	groups, err := decodeGroups(content)
	require.NoError(t, err)
	g := groups[0]
	g.Metrics["m"], g.Metadata["l"] = 1, "a"
	g.Trajectories[0].Metrics["m"], g.Trajectories[0].Metadata["l"] = 1, "a"
}

// What is read as labels is written back the same.
func FuzzLabels(f *testing.F) {
	f.Add(`{"a":1,"b":1.5,"c":{"float":"NaN"},"d":{"bytes":"/w=="},"e":[],"f":-0}`)
	f.Add(`{"a":1e999}`)
	f.Add(`{"a":99999999999999999999}`)
	f.Fuzz(func(t *testing.T, text string) {
		labels, err := decodeLabels(&text)
		if err != nil {
			return
		}
		first, err := encodeLabels(labels)
		require.NoError(t, err)
		labels, err = decodeLabels(first)
		require.NoError(t, err)
		second, err := encodeLabels(labels)
		require.NoError(t, err)
		require.Equal(t, *first, *second)
	})
}
