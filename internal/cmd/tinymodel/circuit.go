package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/goart-dev/art/model"
)

// What the circuit begins with. The scales make it prevail over the random weights beside it.
const (
	constant     = 0.5 // first component of all embeddings
	writeScale   = 2   // of what layer 0 writes
	copyScale    = 3   // of what layer 1 writes
	offsetGain   = 2   // norm of queries and keys of layer 0, where they have the distance
	matchGain    = 1.8 // and of layer 1, where they have the token
	offsetPairs  = 5   // pairs of dimensions that have the distance: those that RoPE rotates fastest
	offsetHeads  = 2   // heads of layer 0
	randomFactor = 0.1 // of other weights of queries and keys in layer 1
)

// induce makes the first two layers copy: when a token has occurred before, attention finds what followed it there.
// Training finds this circuit by itself (induction heads, Olsson et al. 2022), but late, and only from texts that
// are little else than copies. With R, S_0, S_1, ... matrices of random orthonormal rows:
//
//   - Layer 0: head h attends to the token h+1 places before, by position alone, and adds S_hᵀ R x of that token.
//   - Layer 1: head 0 compares R x of a token with S_0 x of others, which is R x of the token before them. Head 1
//
// compares
//
//	the token before as well. Both add what they find, each in half of the dimensions.
func induce(w *model.Weights, seed uint64) {
	c := &circuit{Weights: w, rng: rand.New(rand.NewPCG(seed, 0x1d))}
	read, written := orthonormal(c.rng, w.Config.HiddenSize), orthonormal(c.rng, w.Config.HiddenSize)
	embed := w.Tensors[0]
	for id := range embed.Shape[0] {
		embed.Data[id*embed.Shape[1]] = constant
	}
	for head := range offsetHeads {
		c.lookBack(head)
		c.values(0, head, read[:w.Config.HeadDim], written[head*w.Config.HeadDim:], writeScale)
		c.values(1, head, read[head*w.Config.HeadDim:], read[head*w.Config.HeadDim:], copyScale)
	}
	c.gains(0, offsetGain, func(pair int) bool { return pair < offsetPairs })
	c.gains(1, matchGain, c.slow)
	half := w.Config.HeadDim / 2
	before := written[w.Config.HeadDim:]
	c.match(0, read[:half], written[:half])
	c.match(1, append(read[:half/2:half/2], written[:half/2]...), append(written[:half/2:half/2], before[:half/2]...))
}

// circuit writes weights of heads.
type circuit struct {
	*model.Weights
	rng *rand.Rand
}

// tensor returns a weight of a layer's attention.
func (c *circuit) tensor(layer int, name string) []float32 {
	name = fmt.Sprintf("model.layers.%d.self_attn.%s.weight", layer, name)
	for _, t := range c.Tensors {
		if t.Name == name {
			return t.Data
		}
	}
	panic("tinymodel: no tensor " + name)
}

// row returns row d of a head in a matrix of queries, keys or values.
func (c *circuit) row(matrix []float32, head, d int) []float32 {
	n := c.Config.HiddenSize
	at := (head*c.Config.HeadDim + d) * n
	return matrix[at : at+n]
}

// lookBack lets a head of layer 0 attend to the token head+1 places before. RoPE rotates pair f of dimensions by
// θ^-f a position; a key that is rotated so far ahead is nearest to the query of the token that many places behind
// it.
func (c *circuit) lookBack(head int) {
	q, k := c.tensor(0, "q_proj"), c.tensor(0, "k_proj")
	half := c.Config.HeadDim / 2
	for d := range c.Config.HeadDim {
		clear(c.row(q, head, d))
		clear(c.row(k, head, d))
	}
	for f := range offsetPairs {
		angle := float64(head+1) * math.Pow(c.Config.RopeTheta, -float64(f)/float64(half))
		c.row(q, head, f)[0] = 1
		c.row(k, head, f)[0] = float32(math.Cos(angle))
		c.row(k, head, f+half)[0] = float32(math.Sin(angle))
	}
}

// values lets a head add scale·toᵀ·from·x of the tokens that it attends to. The lists have a row for each
// dimension.
func (c *circuit) values(layer, head int, from, to [][]float32, scale float32) {
	v, o := c.tensor(layer, "v_proj"), c.tensor(layer, "o_proj")
	inputs := c.Config.NumHeads * c.Config.HeadDim
	for d := range c.Config.HeadDim {
		copy(c.row(v, head, d), from[d])
		for i := range c.Config.HiddenSize {
			o[i*inputs+head*c.Config.HeadDim+d] = scale * to[d][i]
		}
	}
}

// slow reports whether RoPE hardly rotates a pair of dimensions, so that it can compare tokens at any distance.
func (c *circuit) slow(pair int) bool { return pair >= c.Config.HeadDim/4 }

// match lets a head of layer 1 compare a projection of a token with another of the tokens before it.
func (c *circuit) match(head int, query, key [][]float32) {
	q, k := c.tensor(1, "q_proj"), c.tensor(1, "k_proj")
	next := 0
	for d := range c.Config.HeadDim {
		if c.slow(d % (c.Config.HeadDim / 2)) {
			copy(c.row(q, head, d), query[next])
			copy(c.row(k, head, d), key[next])
			next++
			continue
		}
		for i := range c.Config.HiddenSize {
			c.row(q, head, d)[i] *= randomFactor
			c.row(k, head, d)[i] *= randomFactor
		}
	}
}

// gains sets the norm of the pairs of dimensions that are chosen, for queries and keys.
func (c *circuit) gains(layer int, gain float32, chosen func(pair int) bool) {
	half := c.Config.HeadDim / 2
	for _, name := range []string{"q_norm", "k_norm"} {
		norm := c.tensor(layer, name)
		for d := range norm {
			if chosen(d % half) {
				norm[d] = gain
			}
		}
	}
}

// orthonormal returns n random rows of length n that are orthogonal to each other, of length 1.
func orthonormal(rng *rand.Rand, n int) [][]float32 {
	rows, out := make([][]float64, n), make([][]float32, n)
	for i := range rows {
		rows[i], out[i] = make([]float64, n), make([]float32, n)
		for j := range rows[i] {
			rows[i][j] = rng.NormFloat64()
		}
		for _, other := range rows[:i] {
			along := dot(rows[i], other)
			for j := range other {
				rows[i][j] -= along * other[j]
			}
		}
		length := math.Sqrt(dot(rows[i], rows[i]))
		for j := range rows[i] {
			rows[i][j] /= length
			out[i][j] = float32(rows[i][j])
		}
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
