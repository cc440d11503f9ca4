package tiny_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// TestWeights_Recorded: the weights are those that the log says were made, and not larger than a package should bring.
func TestWeights_Recorded(t *testing.T) {
	data, err := os.ReadFile(model.WeightsFile)
	require.NoError(t, err)
	require.Less(t, len(data), 4<<20)
	months, err := filepath.Glob("../../docs/log/*.md")
	require.NoError(t, err)
	var log strings.Builder
	for _, month := range months {
		text, err := os.ReadFile(month)
		require.NoError(t, err)
		log.Write(text)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	require.True(t, strings.Contains(log.String(), sum),
		"docs/log does not record %s: say there how the weights were made", sum)
}

func TestLoad(t *testing.T) {
	w, err := tiny.Load()
	require.NoError(t, err)
	vocabulary, config := tiny.Tokenizer()
	require.NotEmpty(t, vocabulary)
	require.NotEmpty(t, config)
	again, err := tiny.Load()
	require.NoError(t, err)
	again.Tensors[0].Data[0]++
	require.NotEqual(t, again.Tensors[0].Data[0], w.Tensors[0].Data[0], "each load is a copy")
}
