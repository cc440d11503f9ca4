package deltarule

import "github.com/goart-dev/art/backend/device/cpu/internal/gemm"

// chunk is a chunk of a row whose gradient is computed: n tokens from one on. Matrices of two tokens are [n, Chunk]:
// the later token s is the row.
type chunk struct {
	Row
	g       *Gradient
	kernels *gemm.Kernels

	from, n       int
	before, after []float32 // states [K, V]

	decays, shifted            []float32 // D[s, t], and D[s-1, t] for s > t
	queries, keys, outs, reads []float32 // D q[s]·k[t]; -D b[s] k[s]·k[t], s > t; D dO[s]·d[t]; D[s-1, t] du[s]·d[t]
	scaledA, scaledB           []float32 // [n, K]
	delta, dDelta, dRead       []float32 // [n, V]: d, dd and du
	scaledV                    []float32 // [n, V]
	first                      [Chunk + 1]float32
}

// solved rows are substituted at once, and then multiplied with all that are left.
const solved = 16

func (c *chunk) compute() {
	c.products()
	c.solve()
	c.values()
	c.ofQueries()
	c.ofKeys()
	c.ofDecays()
	c.ofState()
}

// rows is a matrix of which each token of the chunk has a row.
func (c *chunk) rows(x []float32, step int) gemm.View {
	return gemm.View{Data: x[c.from*step:], Row: step, Col: 1}
}

func (c *chunk) query() gemm.View { return c.rows(c.Query, c.QueryStep) }
func (c *chunk) key() gemm.View   { return c.rows(c.Key, c.KeyStep) }
func (c *chunk) out() gemm.View   { return c.rows(c.g.Output, c.g.OutputStep) }

func pairs(x []float32) gemm.View { return gemm.View{Data: x, Row: Chunk, Col: 1} }

func (c *chunk) decay(t int) float32 { return c.Decay[(c.from+t)*c.DecayStep] }
func (c *chunk) rate(t int) float32  { return c.Rate[(c.from+t)*c.RateStep] }

// multiply computes to [m, n] = a [m, k] b [k, n], or adds that; size is m, n and k.
func (c *chunk) multiply(to gemm.Out, a, b gemm.View, size [3]int, add bool) {
	c.kernels.Mul(nil, gemm.Matmul{C: to, A: a, B: b, M: size[0], N: size[1], K: size[2], Add: add})
}

// scale writes the rows of x, of width elements, times factors.
func (c *chunk) scale(dst []float32, x gemm.View, width int, factor func(t int) float32) gemm.View {
	for t := range c.n {
		f := factor(t)
		for i, y := range x.Data[t*x.Row:][:width] {
			dst[t*width+i] = f * y
		}
	}
	return gemm.View{Data: dst, Row: width, Col: 1}
}

// last is D[n, t].
func (c *chunk) last(t int) float32 { return c.decays[(c.n-1)*Chunk+t] }

// upTo is D[t, 0] with the decay of token t, for the state before the chunk, and until that without.
func (c *chunk) upTo(t int) float32  { return c.first[t+1] }
func (c *chunk) until(t int) float32 { return c.first[t] }

// products computes the decays between tokens, d, and the products of queries and keys.
func (c *chunk) products() {
	c.first[0] = 1
	for s := range c.n {
		a := c.decay(s)
		c.first[s+1] = c.first[s] * a
		row, shifted := c.decays[s*Chunk:][:Chunk], c.shifted[s*Chunk:][:Chunk]
		clear(row)
		clear(shifted)
		if s > 0 {
			copy(shifted[:s], c.decays[(s-1)*Chunk:])
		}
		for t := range s {
			row[t] = shifted[t] * a
		}
		row[s] = 1
		for j, e := range c.errors[(c.from+s)*c.Values:][:c.Values] {
			c.delta[s*c.Values+j] = c.rate(s) * e
		}
	}
	n, k, v := c.n, c.Keys, c.Values
	c.multiply(gemm.Out{Data: c.queries, Row: Chunk}, c.query(), c.key().T(), [3]int{n, n, k}, false)
	c.multiply(gemm.Out{Data: c.keys, Row: Chunk}, c.key(), c.key().T(), [3]int{n, n, k}, false)
	delta := gemm.View{Data: c.delta, Row: v, Col: 1}
	c.multiply(gemm.Out{Data: c.outs, Row: Chunk}, c.out(), delta.T(), [3]int{n, n, v}, false)
	for s := range n {
		for t := range n {
			at := s*Chunk + t
			d := c.decays[at]
			c.queries[at] *= d
			c.outs[at] *= d
			if s > t {
				c.keys[at] *= -d * c.rate(s)
			} else {
				c.keys[at] = 0
			}
		}
	}
}

// solve computes dd, from the last token to the first, and du.
func (c *chunk) solve() {
	n, k, v := c.n, c.Keys, c.Values
	out := gemm.Out{Data: c.dDelta, Row: v}
	after := gemm.View{Data: c.g.State, Row: v, Col: 1}
	c.multiply(out, c.scale(c.scaledA, c.key(), k, c.last), after, [3]int{n, v, k}, false)
	c.multiply(out, pairs(c.queries).T(), c.out(), [3]int{n, v, n}, true)
	for end := n; end > 0; end -= solved {
		begin := max(0, end-solved)
		if end < n {
			left := gemm.View{Data: c.keys[end*Chunk+begin:], Row: 1, Col: Chunk}
			right := gemm.View{Data: c.dDelta[end*v:], Row: v, Col: 1}
			c.multiply(gemm.Out{Data: c.dDelta[begin*v:], Row: v}, left, right, [3]int{end - begin, v, n - end}, true)
		}
		for t := end - 2; t >= begin; t-- {
			row := c.dDelta[t*v:][:v]
			for s := t + 1; s < end; s++ {
				f := c.keys[s*Chunk+t]
				for j, x := range c.dDelta[s*v:][:v] {
					row[j] += float32(f * x)
				}
			}
		}
	}
	c.scale(c.dRead, gemm.View{Data: c.dDelta, Row: v, Col: 1}, v, func(t int) float32 { return -c.rate(t) * c.decay(t) })
}

// values writes the gradients of values and rates, and computes the products of du and d.
func (c *chunk) values() {
	n, v := c.n, c.Values
	for t := range n {
		b, sum := c.rate(t), float32(0)
		to := c.g.Value[(c.from+t)*c.g.ValueStep:][:v]
		e := c.errors[(c.from+t)*v:][:v]
		for j, x := range c.dDelta[t*v:][:v] {
			to[j] = b * x
			sum += float32(x * e[j])
		}
		c.g.Rate[(c.from+t)*c.g.RateStep] = sum
	}
	left, right := gemm.View{Data: c.dRead, Row: v, Col: 1}, gemm.View{Data: c.delta, Row: v, Col: 1}
	c.multiply(gemm.Out{Data: c.reads, Row: Chunk}, left, right.T(), [3]int{n, n, v}, false)
	for s := range n {
		for t := range n {
			c.reads[s*Chunk+t] *= c.shifted[s*Chunk+t]
		}
	}
}

func (c *chunk) ofQueries() {
	n, k, v := c.n, c.Keys, c.Values
	out := gemm.Out{Data: c.g.Query[c.from*c.g.KeyStep:], Row: c.g.KeyStep}
	state := gemm.View{Data: c.before, Row: v, Col: 1}
	c.multiply(out, c.scale(c.scaledV, c.out(), v, c.upTo), state.T(), [3]int{n, k, v}, false)
	c.multiply(out, pairs(c.outs), c.key(), [3]int{n, k, n}, true)
}

func (c *chunk) ofKeys() {
	n, k, v := c.n, c.Keys, c.Values
	out := gemm.Out{Data: c.g.Key[c.from*c.g.KeyStep:], Row: c.g.KeyStep}
	state, after := gemm.View{Data: c.before, Row: v, Col: 1}, gemm.View{Data: c.g.State, Row: v, Col: 1}
	delta, read := gemm.View{Data: c.delta, Row: v, Col: 1}, gemm.View{Data: c.dRead, Row: v, Col: 1}
	c.multiply(out, pairs(c.outs).T(), c.query(), [3]int{n, k, n}, false)
	c.multiply(out, c.scale(c.scaledV, delta, v, c.last), after.T(), [3]int{n, k, v}, true)
	c.multiply(out, pairs(c.reads).T(), c.key(), [3]int{n, k, n}, true)
	c.multiply(out, c.scale(c.scaledV, read, v, c.until), state.T(), [3]int{n, k, v}, true)
	c.multiply(out, pairs(c.reads), c.key(), [3]int{n, k, n}, true)
}

// ofDecays goes from token to token, which would add up roundings: each chunk begins with a sum of its own. dO[t]·o[t]
// is q[t]·dq[t].
func (c *chunk) ofDecays() {
	sum := dot(c.g.State, c.after)
	for t := c.n - 1; t >= 0; t-- {
		at := c.from + t
		sum += dot(c.Query[at*c.QueryStep:][:c.Keys], c.g.Query[at*c.g.KeyStep:])
		sum -= dot(c.Value[at*c.ValueStep:][:c.Values], c.g.Value[at*c.g.ValueStep:])
		c.g.LogDecay[at*c.g.RateStep] = float32(sum)
	}
}

// dot is a sum of products in float64, in order.
func dot(x, y []float32) (sum float64) {
	for i, a := range x {
		sum += float64(a) * float64(y[i])
	}
	return sum
}

// ofState computes the gradient of the state before the chunk in place of that of the state after it.
func (c *chunk) ofState() {
	n, k, v := c.n, c.Keys, c.Values
	f := c.upTo(n - 1)
	for i := range c.g.State {
		c.g.State[i] *= f
	}
	out := gemm.Out{Data: c.g.State, Row: v}
	c.multiply(out, c.scale(c.scaledA, c.query(), k, c.upTo).T(), c.out(), [3]int{k, v, n}, true)
	read := gemm.View{Data: c.dRead, Row: v, Col: 1}
	c.multiply(out, c.scale(c.scaledB, c.key(), k, c.until).T(), read, [3]int{k, v, n}, true)
}
