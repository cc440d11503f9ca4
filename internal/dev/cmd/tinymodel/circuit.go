package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
)

// What the circuit begins with.
const (
	constant     = 0.5 // first component of all embeddings
	offsetGain   = 2   // norm of queries and keys of layer 0, where they have the distance
	offsetPairs  = 5   // pairs of dimensions that have the distance: those that RoPE rotates fastest
	matchGain    = 1.8 // norm of queries and keys of layer 1, where they have the token
	lookupGain   = 3.5 // and of layer 2
	randomFactor = 0.1 // of other weights of queries and keys in layers 1 and 2

	// Pairs that RoPE rotates by less than a half turn over some hundred tokens, so that they prefer the near ones.
	firstNear, lastNear = 9, 12
	nearQuery, nearKey  = 0.6, 8

	markPair  = 15 // has whether a token is marked; RoPE hardly rotates it
	markQuery = 30
)

// scales are factors of the circuit's weights.
type scales struct {
	write  float32 // of what layer 0 and the heads that gather write
	copy   float32 // of what heads write that copy
	branch float32 // of the other matrices that write into the residual stream: what they say at first is noise
}

// learnsBest are the scales that training begins with. Noise hides the circuit until some steps are made: others copy
// at once and learn more slowly afterwards (docs/log, "35 million tokens").
var learnsBest = scales{2, 1.5, 1}

// marks are tokens behind which a definition of a tool has what matters: `"name": "`, `"properties": {"`.
type marks struct{ name, properties int32 }

func marksOf(tok *tokenizer.Tokenizer) marks {
	return marks{tok.EncodeOrdinary("name")[0], tok.EncodeOrdinary("properties")[0]}
}

// offsets are how many tokens before itself a head of layer 0 attends to.
var offsets = []int{1, 2, 4, 5}

// induce makes the first layers of four heads on two keys copy and look up. Training finds the first by itself, but
// late (induction heads, Olsson et al. 2022), and did not find the second.
//
//   - Copying: when a token has occurred before, attention finds what followed it there.
//   - Looking up: behind `"arguments": {"` of a call, attention finds the first parameter in the definition of the tool
//     whose name was just written.
//
// With R and S1, S2, S4, S5, G matrices of random orthonormal rows, R' and S' the first half of their rows:
//
//   - Layer 0: heads attend to the token 1, 2, 4 and 5 places before, by position alone, and add S1ᵀRx, S2ᵀRx, S4ᵀR'x
//     and S5ᵀR'x of it.
//   - Layer 1: heads 0 and 1 compare R x of a token with S1 x of others, which is R x of the token before them, and add
//     half of what they find. Heads 2 and 3 attend to the nearest token that is 4 or 5 places behind `name`, which are
//     the second and the third token of a tool's name, and add Gᵀ S1'x of it: the first and the second token.
//   - Layer 2: heads 0 and 1 compare two tokens, and add the other half of what they find. Heads 2 and 3 compare G x
//     with that of tokens 4 places behind `properties`, and add RᵀS1x of it: the token after `"properties": {"`.
func induce(w *model.Weights, seed uint64, s scales, m marks) {
	c := &circuit{Weights: w, scales: s, rng: rand.New(rand.NewPCG(seed, 0x1d))}
	c.quieten()
	d := c.directions()
	for head, to := range [][][]float32{d.s1, d.s2, d.s4, d.s5} {
		c.lookBack(head, offsets[head])
		c.values(0, head, d.r[:len(to)], to, s.write)
	}
	c.gains(0, offsetGain, func(pair int) bool { return pair < offsetPairs })
	c.gains(1, matchGain, c.slow)
	c.gains(2, lookupGain, func(pair int) bool { return pair >= markPair })
	c.copies(d)
	c.looksUp(d, m)
}

// directions are the matrices of induce by rows. all is R and the rest of its basis; half is the number of rows of R'.
type directions struct {
	all, r, s1, s2, s4, s5, g [][]float32
	half                      int
}

func (c *circuit) directions() *directions {
	read, written, rank := c.projections(), c.projections(), c.Config.HeadDim/2
	half := rank / 2
	return &directions{
		all: read, r: read[:rank], s1: written[:rank], s2: written[rank : 2*rank],
		s4: written[2*rank : 2*rank+half], s5: written[2*rank+half : 3*rank], g: written[3*rank:], half: half,
	}
}

// copies makes heads 0 and 1 of layers 1 and 2 copy.
func (c *circuit) copies(d *directions) {
	c.match(1, "k_proj", 0, d.s1)
	c.match(2, "k_proj", 0, slices.Concat(d.s1[:d.half], d.s2[:d.half]))
	first, second := d.all[:c.Config.HeadDim], d.all[c.Config.HeadDim:]
	for head := range 2 {
		c.match(1, "q_proj", head, d.r)
		c.values(1, head, first, first, c.copy)
		c.match(2, "q_proj", head, slices.Concat(d.r[:d.half], d.s1[:d.half]))
		c.values(2, head, second, second, c.copy)
	}
}

// looksUp makes heads 2 and 3 of layer 1 gather, and those of layer 2 look up.
func (c *circuit) looksUp(d *directions, m marks) {
	read := d.r[:d.half]
	c.match(1, "k_proj", 1, slices.Concat(d.s4, d.s5))
	c.near("k_proj", 1, nearKey)
	c.match(2, "k_proj", 1, d.g)
	copy(c.row(c.tensor(2, "k_proj"), 1, markPair), combined(d.s4, c.image(read, m.properties)))
	for i := range 2 {
		head := 2 + i
		c.expect(head, i*d.half, c.image(read, m.name))
		c.near("q_proj", head, nearQuery)
		c.values(1, head, d.s1[:d.half], d.g[i*d.half:], c.write)
		c.match(2, "q_proj", head, d.g)
		c.always(c.row(c.tensor(2, "q_proj"), head, markPair), markQuery)
		c.values(2, head, d.s1, d.r, c.copy)
	}
}

// circuit writes weights of heads.
type circuit struct {
	*model.Weights
	scales
	rng *rand.Rand
}

// quieten gives all embeddings one component in common, which nothing else writes and by which heads know nothing but
// positions, and makes small what adds noise to the embeddings.
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
			clear(t.Data[:t.Shape[1]])
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

// always makes a row give the same for all tokens.
func (c *circuit) always(row []float32, value float32) {
	clear(row)
	row[0] = value
}

// keysOf returns which keys and values a head reads: two heads share them.
func (c *circuit) keysOf(head int) int { return head * c.Config.NumKVHeads / c.Config.NumHeads }

// lookBack lets a head of layer 0 attend to the token so many places before. RoPE rotates pair f of dimensions by θ^-f
// a position; a query that is rotated back by so many positions is nearest to the key of the token that many places
// before.
func (c *circuit) lookBack(head, offset int) {
	q, k, keys := c.tensor(0, "q_proj"), c.tensor(0, "k_proj"), c.keysOf(head)
	half := c.Config.HeadDim / 2
	for d := range c.Config.HeadDim {
		clear(c.row(q, head, d))
		clear(c.row(k, keys, d))
	}
	for f := range offsetPairs {
		angle := float64(offset) * math.Pow(c.Config.RopeTheta, -float64(f)/float64(half))
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

// match lets queries or keys be a projection of the token. What compares no tokens stays random, and small.
func (c *circuit) match(layer int, name string, head int, projection [][]float32) {
	matrix := c.tensor(layer, name)
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

// expect lets the queries of a head in layer 1 be the same for all tokens: v in the dimensions of match from the given
// one on.
func (c *circuit) expect(head, from int, v []float32) {
	matrix, at := c.tensor(1, "q_proj"), 0
	for d := range c.Config.HeadDim {
		row := c.row(matrix, head, d)
		clear(row)
		if !c.slow(d % (c.Config.HeadDim / 2)) {
			continue
		}
		if at >= from && at < from+len(v) {
			c.always(row, v[at-from])
		}
		at++
	}
}

// near lets queries or keys of layer 1 prefer near tokens.
func (c *circuit) near(name string, head int, value float32) {
	for pair := firstNear; pair <= lastNear; pair++ {
		c.always(c.row(c.tensor(1, name), head, pair), value)
	}
}

// image is what rows read of a token's embedding, of length 1.
func (c *circuit) image(rows [][]float32, id int32) []float32 {
	embedding := c.Tensors[0].Data[int(id)*c.Config.HiddenSize:][:c.Config.HiddenSize]
	out, sum := make([]float32, len(rows)), 0.0
	for i, row := range rows {
		for j := range row {
			out[i] += row[j] * embedding[j]
		}
		sum += float64(out[i] * out[i])
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(sum))
	}
	return out
}

// combined is the sum of rows by weights.
func combined(rows [][]float32, weights []float32) []float32 {
	out := make([]float32, len(rows[0]))
	for i, row := range rows {
		for j := range row {
			out[j] += row[j] * weights[i]
		}
	}
	return out
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
