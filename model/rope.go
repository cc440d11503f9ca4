package model

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// ropeTables returns cos and sin of position * theta^(-2i/E) for the first n positions, each [n, E/2]. They are computed
// in float64 on the host, so that every graph and every device uses the same numbers.
func (c *Config) ropeTables(n int) (cos, sin *tensors.Tensor) {
	half := c.HeadDim / 2
	cosines := make([]float32, n*half)
	sines := make([]float32, n*half)
	for p := range n {
		for i := range half {
			angle := float64(p) * math.Pow(c.RopeTheta, -2*float64(i)/float64(c.HeadDim))
			cosines[p*half+i] = float32(math.Cos(angle))
			sines[p*half+i] = float32(math.Sin(angle))
		}
	}
	return tensors.FromFlatDataAndDimensions(cosines, n, half), tensors.FromFlatDataAndDimensions(sines, n, half)
}

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
