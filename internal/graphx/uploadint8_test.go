package graphx

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestUploadInt8: each element differs from its multiple of the scale by half a scale at most, the largest one by
// nothing but rounding of float32, and a row of zeros stays one. Matrices that are read in parts are the same.
func TestUploadInt8(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, dims := range [][2]int{{1, 1}, {7, 33}, {2100, 1000}} {
		rows, columns := dims[0], dims[1]
		values := make([]float32, rows*columns)
		for i := range values {
			values[i] = float32(rng.NormFloat64()) * float32(1+i/columns%3)
		}
		clear(values[:columns])
		matrix, scales, err := UploadInt8(graphtest.Device(t), rows, columns,
			func(dst []float32, first int) { copy(dst, values[first*columns:]) })
		require.NoError(t, err)
		require.Equal(t, dims[:], matrix.Shape().Dimensions)
		require.Equal(t, dims[:1], scales.Shape().Dimensions)
		got, each := tensors.MustCopyFlatData[int8](matrix), tensors.MustCopyFlatData[float32](scales)
		for i := range rows {
			row := slices.Clone(values[i*columns : (i+1)*columns])
			rounded := slices.Clone(row)
			RoundInt8(rounded)
			largest := float32(0)
			for j, x := range row {
				largest = max(largest, float32(math.Abs(float64(x))))
				y := each[i] * float32(got[i*columns+j])
				require.Equal(t, rounded[j], y)
				require.InDelta(t, x, y, 0.5001*float64(each[i]), "row %d, column %d, seed %d", i, j, seed)
			}
			require.InDelta(t, largest, 127*each[i], 1e-6*float64(largest))
		}
	}
}

// TestRoundInt8_NotFinite: a row with an element that is not finite has none that is.
func TestRoundInt8_NotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		row := []float32{1, float32(bad), -2}
		RoundInt8(row)
		for _, x := range row {
			require.True(t, math.IsNaN(float64(x)) || math.IsInf(float64(x), 0), "%v", row)
		}
	}
}
