package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/goart-dev/art/model"
)

// What the circuit begins with.
const (
	constant     = 0.5 // first component of all embeddings
	offsetGain   = 2   // norm of queries and keys of layer 0, where they have the distance
	matchGain    = 1.8 // and of layer 1, where they have the token
	offsetPairs  = 5   // pairs of dimensions that have the distance: those that RoPE rotates fastest
	randomFactor = 0.1 // of other weights of queries and keys in layer 1
)

// scales are factors of the circuit's weights.
type scales struct {
	write  float32 // of what layer 0 writes
	copy   float32 // of what a head of layer 1 writes
	branch float32 // of the other matrices that write into the residual stream: what they say at first is noise
}

// learnsBest are the scales that training begins with. Noise hides the circuit until some steps are made: others copy
// at once and learn more slowly afterwards (docs/log, "35 million tokens").
var learnsBest = scales{2, 1.5, 1}

// induce makes the first two layers copy: when a token has occurred before, attention finds what followed it there.
// Training finds this circuit by itself (induction heads, Olsson et al. 2022), but late, and only from texts that are
// little else than copies. With R and S_0, S_1, ... matrices of random orthonormal rows:
//
//   - Layer 0: head h attends to the token h+1 places before, by position alone, and adds S_hᵀ R x of that token.
//   - Layer 1: the heads of the first keys compare R x of a token with S_0 x of others, which is R x of the token
//     before them. Those of the second keys compare the token before as well. All add what they find: those of the
//     first keys in one half of the dimensions, those of the second in the other.
func induce(w *model.Weights, seed uint64, s scales) {
	c := &circuit{Weights: w, scales: s, rng: rand.New(rand.NewPCG(seed, 0x1d))}
	c.quieten()
	read, written := c.projections(), c.projections()
	width, rank := w.Config.HeadDim, w.Config.HeadDim/2
	for head := range w.Config.NumHeads {
		c.lookBack(head)
		c.values(0, head, read[:rank], written[head*rank:], s.write)
		half := read[c.keysOf(head)*width:]
		c.values(1, head, half[:width], half, s.copy)
	}
	c.gains(0, offsetGain, func(pair int) bool { return pair < offsetPairs })
	c.gains(1, matchGain, c.slow)
	pair := slices.Concat(read[:rank/2], written[:rank/2])
	for head := range w.Config.NumHeads {
		c.match("q_proj", head, [][][]float32{read[:rank], pair}[c.keysOf(head)])
	}
	c.match("k_proj", 0, written[:rank])
	c.match("k_proj", 1, slices.Concat(written[:rank/2], written[rank:rank+rank/2]))
}

// circuit writes weights of heads.
type circuit struct {
	*model.Weights
	scales
	rng *rand.Rand
}

// quieten gives all embeddings one component in common, by which heads know nothing but positions, and makes small what
// adds noise to the embeddings.
func (c *circuit) quieten() {
	for _, t := range c.Tensors {
		switch {
		case t.Name == c.Tensors[0].Name:
			for at := 0; at < len(t.Data); at += c.Config.HiddenSize {
				t.Data[at] = constant
			}
		case strings.HasSuffix(t.Name, "o_proj.weight"), strings.HasSuffix(t.Name, "down_proj.weight"):
			for i := range t.Data {
				t.Data[i] *= c.branch
			}
		}
	}
}

// projections are orthonormal rows that do not read the common component.
func (c *circuit) projections() [][]float32 {
	rows := orthonormal(c.rng, c.Config.HiddenSize)
	for _, row := range rows {
		row[0] = 0
	}
	return rows
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

// keysOf returns which keys and values a head reads: two heads share them.
func (c *circuit) keysOf(head int) int { return head * c.Config.NumKVHeads / c.Config.NumHeads }

// lookBack lets a head of layer 0 attend to the token head+1 places before. RoPE rotates pair f of dimensions by θ^-f a
// position; a query that is rotated back by so many positions is nearest to the key of the token that many places
// before.
func (c *circuit) lookBack(head int) {
	q, k, keys := c.tensor(0, "q_proj"), c.tensor(0, "k_proj"), c.keysOf(head)
	half := c.Config.HeadDim / 2
	for d := range c.Config.HeadDim {
		clear(c.row(q, head, d))
		clear(c.row(k, keys, d))
	}
	for f := range offsetPairs {
		angle := float64(head+1) * math.Pow(c.Config.RopeTheta, -float64(f)/float64(half))
		c.row(k, keys, f)[0] = 1
		c.row(q, head, f)[0] = float32(math.Cos(angle))
		c.row(q, head, f+half)[0] = -float32(math.Sin(angle))
	}
}

// values lets a head add scale·toᵀ·from·x of the tokens that it attends to. from has at most as many rows as the head
// has dimensions.
func (c *circuit) values(layer, head int, from, to [][]float32, scale float32) {
	v, o := c.tensor(layer, "v_proj"), c.tensor(layer, "o_proj")
	inputs := c.Config.NumHeads * c.Config.HeadDim
	for d := range c.Config.HeadDim {
		value := c.row(v, c.keysOf(head), d)
		clear(value)
		for i := range c.Config.HiddenSize {
			o[i*inputs+head*c.Config.HeadDim+d] = 0
			if d < len(from) {
				o[i*inputs+head*c.Config.HeadDim+d] = scale * to[d][i]
			}
		}
		if d < len(from) {
			copy(value, from[d])
		}
	}
}

// slow reports whether RoPE hardly rotates a pair of dimensions, so that it can compare tokens at any distance.
func (c *circuit) slow(pair int) bool { return pair >= c.Config.HeadDim/4 }

// match lets queries or keys of layer 1 be a projection of the token. What compares no tokens stays random, and small.
func (c *circuit) match(name string, head int, projection [][]float32) {
	matrix := c.tensor(1, name)
	for d := range c.Config.HeadDim {
		row := c.row(matrix, head, d)
		if c.slow(d % (c.Config.HeadDim / 2)) {
			copy(row, projection[0])
			projection = projection[1:]
			continue
		}
		for i := range row {
			row[i] *= randomFactor
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
