package model

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// ropeTables returns, with angle = position * theta^(-2i/E), the rows [cos, cos] and [-sin, sin] of the first n positions, each
// [n, E]. They are computed in float64 on the host, so that every graph and every device uses the same numbers.
func (c *Config) ropeTables(n int) (cos, sin *tensors.Tensor) {
	size, half := c.HeadDim, c.HeadDim/2
	cosines := make([]float32, n*size)
	sines := make([]float32, n*size)
	for p := range n {
		for i := range half {
			angle := float64(p) * math.Pow(c.RopeTheta, -2*float64(i)/float64(size))
			at := p*size + i
			cosines[at], cosines[at+half] = float32(math.Cos(angle)), float32(math.Cos(angle))
			sines[at], sines[at+half] = -float32(math.Sin(angle)), float32(math.Sin(angle))
		}
	}
	return tensors.FromFlatDataAndDimensions(cosines, n, size), tensors.FromFlatDataAndDimensions(sines, n, size)
}

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
