// Package deltarule computes the gated delta rule (Yang et al. 2024, https://arxiv.org/abs/2412.06464) token by token.
//
// A head keeps a state S [K, V]. A token has a query q and a key k of K numbers, a value v of V numbers, a decay a and
// a rate b:
//
//	d = b (v - a Sᵀk)        S = a S + k dᵀ        o = Sᵀq
//
// A column of the state depends on no other one, so that columns are computed together in vectors and by different
// workers. Each number has one order of roundings, at every level and wherever a sequence is cut:
//
//	u[j] = fma(k[K-1], S[K-1, j], ... fma(k[0], S[0, j], +0))        of the state before
//	d[j] = b * (v[j] - a*u[j])        S[i, j] = fma(k[i], d[j], a*S[i, j])
//	o[j] = fma(q[K-1], S[K-1, j], ... fma(q[0], S[0, j], +0))        of the state after
package deltarule

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/fma"
)

//go:generate go run ./gen

// Columns of a state that a kernel computes at once.
const Columns = 32

// Row is a sequence of tokens of a head. What belongs to a token lies together, and the number of elements from one
// token to the next is the step; those of a decay and a rate are one number.
type Row struct {
	Tokens            int
	Keys, Values      int // K and V
	Query, Key        []float32
	QueryStep         int
	KeyStep           int
	Value             []float32
	ValueStep         int
	Decay, Rate       []float32
	DecayStep         int
	RateStep          int
	State, Next       []float32 // [K, V]: before, nil for zeros, and after, nil where it is not wanted
	Output            []float32 // nil where it is not wanted
	OutputStep        int
	errors, snapshots []float32 // of a gradient: v - a u [T, V], and the states [T/Chunk + 1, K, V] at its chunks
}

// Scratch is the number of float32 that [Forward] works in.
func Scratch(keys int) int { return keys*Columns + 3*Columns }

// Forward computes the columns of a row from one on, at most [Columns]. Next may be State.
func Forward(l cpuid.Level, r *Row, column int, scratch []float32) {
	n := min(Columns, r.Values-column)
	block, rest := scratch[:r.Keys*Columns], scratch[r.Keys*Columns:]
	s := step{rows: r.Keys}
	delta, out, read := rest[:Columns], rest[Columns:2*Columns], rest[2*Columns:3*Columns]
	s.delta, s.out, s.read = &delta[0], &out[0], &read[0]
	s.src, s.srcRow = &block[0], 4*Columns
	switch {
	case r.State == nil:
		clear(block)
	case n == Columns:
		s.src, s.srcRow = &r.State[column], 4*r.Values
	default:
		clear(block)
		copyColumns(block, Columns, r.State[column:], r.Values, r.Keys, n)
	}
	clear(read)
	if r.State != nil && r.Tokens > 0 {
		s.next = &r.Key[0]
		readOf(l)(&s)
	}
	kernel := stepOf(l)
	for t := range r.Tokens {
		if t%Chunk == 0 && r.snapshots != nil {
			r.keep(t/Chunk, column, n, &s)
		}
		decay, rate := r.Decay[t*r.DecayStep], r.Rate[t*r.RateStep]
		for j, v := range r.Value[t*r.ValueStep+column:][:n] {
			e := v - float32(decay*read[j])
			if r.errors != nil {
				r.errors[t*r.Values+column+j] = e
			}
			delta[j] = rate * e
		}
		s.decay, s.query, s.key = decay, &r.Query[t*r.QueryStep], &r.Key[t*r.KeyStep]
		s.next = s.key
		if t < r.Tokens-1 {
			s.next = &r.Key[(t+1)*r.KeyStep]
		}
		s.dst, s.dstRow = &block[0], 4*Columns
		if t == r.Tokens-1 && r.Next != nil && n == Columns {
			s.dst, s.dstRow = &r.Next[column], 4*r.Values
		}
		kernel(&s)
		if r.Output != nil {
			copy(r.Output[t*r.OutputStep+column:][:n], out)
		}
		s.src, s.srcRow = s.dst, s.dstRow
	}
	switch {
	case r.snapshots != nil:
		r.keep((r.Tokens+Chunk-1)/Chunk, column, n, &s)
	case r.Next != nil && (n < Columns || r.Tokens == 0):
		copyColumns(r.Next[column:], r.Values, s.source(), s.srcRow/4, r.Keys, n)
	}
}

// keep stores the columns of the state that s reads as a snapshot.
func (r *Row) keep(number, column, n int, s *step) {
	to := r.snapshots[number*r.Keys*r.Values+column:]
	copyColumns(to, r.Values, s.source(), s.srcRow/4, r.Keys, n)
}

// copyColumns copies n columns of some rows.
func copyColumns(dst []float32, dstRow int, src []float32, srcRow, rows, n int) {
	for i := range rows {
		copy(dst[i*dstRow:][:n], src[i*srcRow:][:n])
	}
}

// step is the argument of a kernel: a token and 32 columns of a state, which it reads at src and writes to dst.
type step struct {
	src, dst         *float32
	srcRow, dstRow   int // bytes from a row to the next
	key, query, next *float32
	delta, out, read *float32
	rows             int
	decay            float32
}

// source is the block that is read.
func (s *step) source() []float32 { return unsafe.Slice(s.src, (s.rows-1)*s.srcRow/4+Columns) }

// kernel computes out and read, those of the query and of the next key, with the state after a token: or, to begin
// with, only read, of the state as it is.
type kernel func(s *step)

func stepPortable(s *step) {
	src, dst := s.source(), unsafe.Slice(s.dst, (s.rows-1)*s.dstRow/4+Columns)
	delta, out, read := unsafe.Slice(s.delta, Columns), unsafe.Slice(s.out, Columns), unsafe.Slice(s.read, Columns)
	key, query, next := unsafe.Slice(s.key, s.rows), unsafe.Slice(s.query, s.rows), unsafe.Slice(s.next, s.rows)
	clear(out)
	clear(read)
	for i := range s.rows {
		from, to := src[i*s.srcRow/4:][:Columns], dst[i*s.dstRow/4:][:Columns]
		for j, x := range from {
			x = fma.Float32(key[i], delta[j], s.decay*x)
			to[j] = x
			out[j] = fma.Float32(query[i], x, out[j])
			read[j] = fma.Float32(next[i], x, read[j])
		}
	}
}

func readPortable(s *step) {
	src, read, next := s.source(), unsafe.Slice(s.read, Columns), unsafe.Slice(s.next, s.rows)
	clear(read)
	for i := range s.rows {
		for j, x := range src[i*s.srcRow/4:][:Columns] {
			read[j] = fma.Float32(next[i], x, read[j])
		}
	}
}
