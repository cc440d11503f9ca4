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
	theta     float64
	scaling   *RopeScaling // nil is none
	positions int          // of the model
	size      int          // how many numbers of a head are rotated, the first ones; the others stay as they are
	turning   int          // how many of the size/2 pairs have a frequency, where the others have 0; 0: all of them
	// interleaved rotates the pairs (2i, 2i+1), and otherwise the halves (i, i + size/2).
	interleaved bool
}

// rope returns the configuration of all layers, or of those without a window.
func (c *Config) rope() rope {
	r := rope{theta: c.RopeTheta, scaling: c.RopeScaling, positions: c.MaxPositions, size: c.HeadDim}
	if c.PartialRotaryFactor != 0 {
		r.size = int(float64(c.HeadDim) * c.PartialRotaryFactor)
	}
	if s := c.RopeScaling; s != nil && s.Alpha != 0 {
		r.theta = stretched(r.theta, s.Alpha, r.size)
	}
	return r
}

// stretched returns the theta that stretches the longest wave by a factor, and the shortest not at all ("NTK-aware",
// Peng et al. 2023):
//
//	theta · by^(size/(size-2))
func stretched(theta, by float64, size int) float64 {
	return theta * math.Pow(by, float64(size)/float64(size-2))
}

// frequency returns the angular frequency, in radians per position, of the i-th of size/2 pairs:
//
//	f = theta^(-2i/size)
//
// Linear scaling divides it by a factor (Chen et al. 2023). Llama 3's does so for wavelengths above OriginalPositions /
// LowFactor, and leaves those below OriginalPositions / HighFactor; in between it is (1-s) f/Factor + s f, with s going
// from 0 to 1 as wavelengths get shorter (Grattafiori et al. 2024). YaRN goes from f to f/Factor along a ramp over the
// pairs (Peng et al. 2023). LongRoPE divides each by a factor of its own (Ding et al. 2024).
func (r rope) frequency(i int) float64 {
	if r.turning > 0 && i >= r.turning {
		return 0
	}
	f := math.Pow(r.theta, -2*float64(i)/float64(r.size))
	s := r.scaling
	if s == nil {
		return f
	}
	switch s.Type {
	case ropeLinear:
		return f / s.Factor
	case ropeLlama3:
		waves := float64(s.OriginalPositions) * f / (2 * math.Pi) // within the original context
		smooth := min(max((waves-s.LowFactor)/(s.HighFactor-s.LowFactor), 0), 1)
		return (1-smooth)*f/s.Factor + smooth*f
	case ropeYarn:
		from, to := r.ramp()
		slow := min(max((float64(i)-from)/(to-from), 0), 1)
		return slow*f/s.Factor + (1-slow)*f
	case ropeLong:
		if r.positions > s.OriginalPositions {
			return f / s.LongFactors[i]
		}
		return f / s.ShortFactors[i]
	}
	return f // dynamic: within MaxPositions, see WithContext
}

// ramp returns between which pairs YaRN goes from frequencies that it keeps to those that it divides. The pair that
// turns n times within the original context is
//
//	size · ln(OriginalPositions / (2 pi n)) / (2 ln theta)
func (r rope) ramp() (from, to float64) {
	fast, slow := r.scaling.betas()
	pair := func(turns float64) float64 {
		return float64(r.size) * math.Log(float64(r.scaling.OriginalPositions)/(turns*2*math.Pi)) / (2 * math.Log(r.theta))
	}
	from, to = pair(fast), pair(slow)
	if r.scaling.Truncate == nil || *r.scaling.Truncate {
		from, to = math.Floor(from), math.Ceil(to)
	}
	from, to = max(from, 0), min(to, float64(r.size-1))
	if from == to {
		to += 0.001
	}
	return from, to
}

// attention returns what cosines and sines are multiplied by, so that scores are by its square. With m(s, k) = 1 +
// 0.1 k ln(s), and 1 for factors up to 1, that of YaRN is
//
//	m(Factor, 1)     or, with both of them,     m(Factor, MScale) / m(Factor, MScaleAllDim)
//
// and that of LongRoPE sqrt(1 + ln(s) / ln(OriginalPositions)), where s is Factor, or else MaxPositions /
// OriginalPositions, and 1 for factors up to 1.
func (r rope) attention() float64 {
	s := r.scaling
	switch {
	case s == nil:
		return 1
	case s.AttentionFactor != 0:
		return s.AttentionFactor
	case s.Type == ropeYarn && s.MScale != 0 && s.MScaleAllDim != 0:
		return s.mscale(s.MScale) / s.mscale(s.MScaleAllDim)
	case s.Type == ropeYarn:
		return s.mscale(1)
	case s.Type != ropeLong:
		return 1
	}
	factor := s.Factor
	if factor == 0 {
		factor = float64(r.positions) / float64(s.OriginalPositions)
	}
	if factor <= 1 {
		return 1
	}
	return math.Sqrt(1 + math.Log(factor)/math.Log(float64(s.OriginalPositions)))
}

// tables returns, with angle = position * frequency, rows of cosines and sines of the first n positions, each [n,
// size]: [cos, cos] and [-sin, sin], or, interleaved, pairs of these. They are computed in float64 on the host, so that
// every graph and every device uses the same numbers.
func (r rope) tables(n int) (cosines, sines []float32) {
	half, attention := r.size/2, r.attention()
	cosines, sines = make([]float32, n*r.size), make([]float32, n*r.size)
	for i := range half {
		f := r.frequency(i)
		first, second := i, i+half
		if r.interleaved {
			first, second = 2*i, 2*i+1
		}
		for p := range n {
			angle, row := float64(p)*f, p*r.size
			cos, sin := float32(math.Cos(angle)*attention), float32(math.Sin(angle)*attention)
			cosines[row+first], cosines[row+second] = cos, cos
			sines[row+first], sines[row+second] = -sin, sin
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
		if l.rope.theta == 0 || slices.Contains(kinds, l.rope) {
			continue
		}
		cosName, sinName := ropeNames(len(kinds))
		kinds, p.Names = append(kinds, l.rope), append(p.Names, cosName, sinName)
		cos, sin := l.rope.tables(n)
		for _, data := range [][]float32{cos, sin} {
			t, err := graphx.Upload(device, data, n, l.rope.size)
			if err != nil {
				return nil, fmt.Errorf("model: RoPE: %w", err)
			}
			p.Tensors = append(p.Tensors, t)
		}
	}
	return p, nil
}

func shapeI32(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }

// WithContext returns the configuration of a model that is opened with a context of so many tokens, and whether its
// RoPE depends on that: transformers chooses the frequencies of two types by the longest position of each call, and the
// keys of a cache would have others than those of later tokens. Here all calls have those of the context.
//
//	dynamic     theta · (Factor·tokens/MaxPositions - (Factor-1))^(size/(size-2)) beyond MaxPositions
//	longrope    LongFactors beyond OriginalPositions, ShortFactors up to there
//
// The result says so in keys that transformers reads too: theta in place of Factor; LongFactors in place of
// ShortFactors. Its MaxPositions are the longest context with these frequencies: tokens of dynamic beyond MaxPositions,
// at most Factor times these.
func (c *Config) WithContext(tokens int) (at *Config, depends bool) {
	s := c.RopeScaling
	depends = s != nil && (s.Type == ropeDynamic && s.Alpha == 0 || s.Type == ropeLong)
	if !depends {
		return c, false
	}
	out, scaling := *c, *s
	trained := float64(c.MaxPositions)
	if s.Type == ropeDynamic {
		tokens = min(tokens, int(s.Factor*trained))
	}
	switch {
	case s.Type == ropeDynamic && tokens > c.MaxPositions:
		out.RopeTheta = stretched(c.RopeTheta, s.Factor*float64(tokens)/trained-(s.Factor-1), c.rope().size)
		out.RopeScaling, out.MaxPositions = nil, tokens
	case s.Type == ropeLong && c.MaxPositions > s.OriginalPositions:
		scaling.AttentionFactor, out.RopeScaling = c.rope().attention(), &scaling
		if tokens > s.OriginalPositions {
			scaling.ShortFactors = s.LongFactors
		} else {
			out.MaxPositions = s.OriginalPositions
		}
	}
	return &out, true
}
