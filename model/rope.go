package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/internal/graphx"
)

// rope configures the rotation of queries and keys of a layer. It is comparable: layers with equal ones share tables.
type rope struct {
	theta   float64
	scaling RopeScaling // the zero value is none
}

// rope returns the configuration of all layers, or of those without a window.
func (c *Config) rope() rope {
	r := rope{theta: c.RopeTheta}
	if c.RopeScaling != nil {
		r.scaling = *c.RopeScaling
	}
	return r
}

// frequency returns the angular frequency, in radians per position, of the i-th of size/2 pairs:
//
//	f = theta^(-2i/size)
//
// Linear scaling divides it by a factor (Chen et al. 2023). Llama 3's does so for wavelengths above OriginalPositions /
// LowFactor, and leaves those below OriginalPositions / HighFactor; in between it is (1-s) f/Factor + s f, with s going
// from 0 to 1 as wavelengths get shorter (Grattafiori et al. 2024).
func (r rope) frequency(i, size int) float64 {
	f := math.Pow(r.theta, -2*float64(i)/float64(size))
	s := r.scaling
	switch s.Type {
	case ropeLinear:
		return f / s.Factor
	case ropeLlama3:
		waves := float64(s.OriginalPositions) * f / (2 * math.Pi) // within the original context
		smooth := min(max((waves-s.LowFactor)/(s.HighFactor-s.LowFactor), 0), 1)
		return (1-smooth)*f/s.Factor + smooth*f
	}
	return f
}

// tables returns, with angle = position * frequency, the rows [cos, cos] and [-sin, sin] of the first n positions, each
// [n, size]. They are computed in float64 on the host, so that every graph and every device uses the same numbers.
func (r rope) tables(n, size int) (cosines, sines []float32) {
	half := size / 2
	cosines, sines = make([]float32, n*size), make([]float32, n*size)
	for i := range half {
		f := r.frequency(i, size)
		for p := range n {
			angle := float64(p) * f
			at := p*size + i
			cosines[at], cosines[at+half] = float32(math.Cos(angle)), float32(math.Cos(angle))
			sines[at], sines[at+half] = -float32(math.Sin(angle)), float32(math.Sin(angle))
		}
	}
	return cosines, sines
}

// ropeNames returns the names of the tables of the kind of RoPE of a number, in the order in which layers have them.
func ropeNames(kind int) (cos, sin string) {
	return fmt.Sprintf("rope.%d.cos", kind), fmt.Sprintf("rope.%d.sin", kind)
}

// RopeTables uploads the tables of rotary embeddings of the first n positions. A graph whose [Forward.Param] has them
// keeps none of its own, so that many graphs share them.
func (c *Config) RopeTables(device compute.Backend, n int) (*Params, error) {
	p := &Params{}
	var kinds []rope
	for _, l := range c.design().layers {
		if slices.Contains(kinds, l.rope) {
			continue
		}
		cosName, sinName := ropeNames(len(kinds))
		kinds, p.Names = append(kinds, l.rope), append(p.Names, cosName, sinName)
		cos, sin := l.rope.tables(n, c.HeadDim)
		for _, data := range [][]float32{cos, sin} {
			t, err := graphx.Upload(device, data, n, c.HeadDim)
			if err != nil {
				return nil, fmt.Errorf("model: RoPE: %w", err)
			}
			p.Tensors = append(p.Tensors, t)
		}
	}
	return p, nil
}

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
