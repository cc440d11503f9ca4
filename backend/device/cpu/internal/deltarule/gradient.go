package deltarule

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

// Chunk is the number of tokens whose gradient is computed at once, from a snapshot of the state before them.
const Chunk = 64

// Gradient is where the gradients of a row go, and where they come from. What belongs to a token lies together, in
// rows [T, K], [T, V] or [T] without gaps unless a step says more.
type Gradient struct {
	Output     []float32 // of the output
	OutputStep int
	Next       []float32 // of the state after, [K, V]; nil for zeros
	Query, Key []float32
	KeyStep    int
	Value      []float32
	ValueStep  int
	LogDecay   []float32 // of log(a)
	Rate       []float32
	RateStep   int       // of both
	State      []float32 // [K, V]: of the state before
}

// GradientScratch is the number of float32 that [Backward] works in.
func GradientScratch(tokens, keys, values int) int {
	chunks := (tokens + Chunk - 1) / Chunk
	return Scratch(keys) + tokens*values + (chunks+1)*keys*values +
		6*Chunk*Chunk + Chunk*(2*keys+4*values)
}

// Backward computes the gradients of a row: the forward pass again, of which it keeps a state of each chunk, and then
// chunk by chunk, from the last, in matmuls. With the tokens of a chunk numbered from 1 to n, S and G its state before
// and the gradient of that after it, D[s, t] the product of the decays of t+1 to s, dO, d and e = v - a u the rows of
// all tokens, and M' what a matrix has for s >= t, or for s > t where that is said:
//
//	R[t] = sum over s >= t of D[s, t] (q[s]·k[t]) dO[s] + D[n, t] Gᵀk[t]
//	dd[t] = R[t] - sum over s > t of D[s, t] b[s] (k[s]·k[t]) dd[s]        du[t] = -b[t] a[t] dd[t]
//	dq[s] = D[s, 0] S dO[s] + sum over t <= s of D[s, t] (dO[s]·d[t]) k[t]
//	dk[t] = sum over s >= t of D[s, t] (dO[s]·d[t]) q[s] + D[n, t] G d[t] + D[t-1, 0] S du[t]
//	        + sum over s > t of D[s-1, t] (du[s]·d[t]) k[s] + sum over s < t of D[t-1, s] (du[t]·d[s]) k[s]
//	dv[t] = b[t] dd[t]        db[t] = dd[t]·e[t]
//	G before = D[n, 0] G + sum of D[s, 0] q[s] dO[s]ᵀ + D[s-1, 0] k[s] du[s]ᵀ
//
// That of the logarithm of a decay needs no sum over the state: it is that of the token behind it, whose first is the
// sum of all elements of G and the state after the chunk, with dO[t]·o[t] - dv[t]·v[t] added.
func Backward(l cpuid.Level, kernels *gemm.Kernels, r Row, g *Gradient, scratch []float32) {
	take := func(n int) []float32 {
		x := scratch[:n:n]
		scratch = scratch[n:]
		return x
	}
	k, v := r.Keys, r.Values
	chunks := (r.Tokens + Chunk - 1) / Chunk
	r.errors, r.snapshots = take(r.Tokens*v), take((chunks+1)*k*v)
	forward := take(Scratch(k))
	r.Next, r.Output = nil, nil
	for column := 0; column < v; column += Columns {
		Forward(l, &r, column, forward)
	}
	if g.Next == nil {
		clear(g.State)
	} else {
		copy(g.State, g.Next)
	}
	c := chunk{
		Row: r, g: g, kernels: kernels,
		decays: take(Chunk * Chunk), shifted: take(Chunk * Chunk),
		queries: take(Chunk * Chunk), keys: take(Chunk * Chunk), outs: take(Chunk * Chunk), reads: take(Chunk * Chunk),
		scaledA: take(Chunk * k), scaledB: take(Chunk * k),
		delta: take(Chunk * v), dDelta: take(Chunk * v), dRead: take(Chunk * v), scaledV: take(Chunk * v),
	}
	for i := chunks - 1; i >= 0; i-- {
		c.from, c.n = i*Chunk, min(Chunk, r.Tokens-i*Chunk)
		c.before, c.after = r.snapshots[i*k*v:][:k*v], r.snapshots[(i+1)*k*v:][:k*v]
		c.compute()
	}
}
