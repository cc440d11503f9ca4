package deltarule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

const seed = 3

// random makes a row whose keys have length 1, and whose queries about as much as those of a model.
func random(r *rand.Rand, tokens, keys, values int) Row {
	draw := func(n int, f func() float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(f())
		}
		return x
	}
	row := Row{
		Tokens: tokens, Keys: keys, Values: values, QueryStep: keys + 3, KeyStep: keys + 1, ValueStep: values + 2,
		DecayStep: 2, RateStep: 3, OutputStep: values + 5,
		Query: draw(tokens*(keys+3), r.NormFloat64), Key: draw(tokens*(keys+1), r.NormFloat64),
		Value: draw(tokens*(values+2), r.NormFloat64),
		Decay: draw(tokens*2, func() float64 { return math.Exp(-math.Abs(r.NormFloat64())) }),
		Rate:  draw(tokens*3, r.Float64), State: draw(keys*values, r.NormFloat64),
		Next: make([]float32, keys*values), Output: make([]float32, tokens*(values+5)),
	}
	for t := range tokens {
		k := row.Key[t*row.KeyStep:][:keys]
		length := math.Sqrt(dot(k, k))
		for i := range k {
			k[i] /= float32(length)
		}
	}
	return row
}

func run(l cpuid.Level, row Row) {
	scratch := make([]float32, Scratch(row.Keys))
	for column := 0; column < row.Values; column += Columns {
		Forward(l, &row, column, scratch)
	}
}

// after is the part of a row behind some tokens, with another state.
func (r Row) after(t int, state []float32) Row {
	r.Tokens, r.State = r.Tokens-t, state
	r.Query, r.Key, r.Value = r.Query[t*r.QueryStep:], r.Key[t*r.KeyStep:], r.Value[t*r.ValueStep:]
	r.Decay, r.Rate, r.Output = r.Decay[t*r.DecayStep:], r.Rate[t*r.RateStep:], r.Output[t*r.OutputStep:]
	return r
}

func sameBits(t *testing.T, what string, want, got []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

var sizes = [][3]int{{1, 1, 1}, {5, 3, 2}, {9, 8, 12}, {3, 7, 32}, {70, 16, 40}, {130, 24, 64}}

// TestForward_SameBits: outputs and states are the same at all levels, and wherever a sequence is cut, in place too.
func TestForward_SameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 0))
	for _, size := range sizes {
		row := random(r, size[0], size[1], size[2])
		if size[0]%2 == 1 {
			row.State = nil
		}
		run(cpuid.Portable, row)
		output, next := slices.Clone(row.Output), slices.Clone(row.Next)
		for _, l := range cpuid.Supported() {
			for _, cut := range []int{0, 1, size[0] / 2, size[0]} {
				clear(row.Output)
				state := make([]float32, len(next))
				first := row
				first.Tokens, first.Next = cut, state
				run(l, first)
				second := row.after(min(cut, size[0]-1), state)
				if second.Tokens = size[0] - cut; cut == size[0] {
					second.Output = nil
				}
				second.Next = state
				run(l, second)
				what := fmt.Sprint(l, size, cut)
				sameBits(t, what, output, row.Output)
				sameBits(t, what+" state", next, state)
			}
		}
	}
}

// reference is the rule in float64, with the state after each token.
func reference(row *Row) (output, state []float64) {
	k, v := row.Keys, row.Values
	state = make([]float64, k*v)
	for i, x := range row.State {
		state[i] = float64(x)
	}
	for t := range row.Tokens {
		a, b := float64(row.Decay[t*row.DecayStep]), float64(row.Rate[t*row.RateStep])
		for j := range v {
			u, o := 0.0, 0.0
			for i := range k {
				u += state[i*v+j] * float64(row.Key[t*row.KeyStep+i])
			}
			d := b * (float64(row.Value[t*row.ValueStep+j]) - a*u)
			for i := range k {
				state[i*v+j] = a*state[i*v+j] + d*float64(row.Key[t*row.KeyStep+i])
				o += state[i*v+j] * float64(row.Query[t*row.QueryStep+i])
			}
			output = append(output, o)
		}
	}
	return output, state
}

// TestForward_Reference: results are those of float64 within rounding, which does not grow with thousands of tokens.
func TestForward_Reference(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 1))
	for _, size := range append(sizes, [3]int{3100, 16, 32}) {
		row := random(r, size[0], size[1], size[2])
		run(cpuid.Supported()[len(cpuid.Supported())-1], row)
		output, state := reference(&row)
		for i, want := range output {
			got := float64(row.Output[i/size[2]*row.OutputStep+i%size[2]])
			if math.Abs(got-want) > 4e-6*(1+math.Abs(want)) {
				t.Fatalf("%v: output %d is %v, want %v", size, i, got, want)
			}
		}
		for i, want := range state {
			if math.Abs(float64(row.Next[i])-want) > 4e-6*(1+math.Abs(want)) {
				t.Fatalf("%v: state %d is %v, want %v", size, i, row.Next[i], want)
			}
		}
	}
}

// gradients are those of sum(weights*output) + sum(weights*state), with seeded weights.
func gradients(r *rand.Rand, l cpuid.Level, row Row) (g *Gradient, loss func() float64) {
	n, k, v := row.Tokens, row.Keys, row.Values
	g = &Gradient{
		OutputStep: v + 1, Output: make([]float32, n*(v+1)), Next: make([]float32, k*v),
		KeyStep: k, Query: make([]float32, n*k), Key: make([]float32, n*k), ValueStep: v, Value: make([]float32, n*v),
		RateStep: 1, LogDecay: make([]float32, n), Rate: make([]float32, n), State: make([]float32, k*v),
	}
	for _, x := range [][]float32{g.Output, g.Next} {
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
	}
	Backward(l, gemm.New(l), row, g, make([]float32, GradientScratch(n, k, v)))
	return g, func() (sum float64) {
		output, state := reference(&row)
		for i, x := range output {
			sum += x * float64(g.Output[i/v*g.OutputStep+i%v])
		}
		for i, x := range state {
			sum += x * float64(g.Next[i])
		}
		return sum
	}
}

// TestBackward_FiniteDifferences: gradients are the slopes of the rule in float64.
func TestBackward_FiniteDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 2))
	for _, size := range [][3]int{{1, 1, 1}, {5, 3, 2}, {21, 4, 3}, {67, 5, 6}, {140, 3, 4}} {
		row := random(r, size[0], size[1], size[2])
		g, loss := gradients(r, cpuid.Supported()[len(cpuid.Supported())-1], row)
		for range 60 {
			at, of := r.IntN(size[0]), r.IntN(6)
			i, j := r.IntN(size[1]), r.IntN(size[2])
			var x *float32
			var got float32
			switch of {
			case 0:
				x, got = &row.Query[at*row.QueryStep+i], g.Query[at*size[1]+i]
			case 1:
				x, got = &row.Key[at*row.KeyStep+i], g.Key[at*size[1]+i]
			case 2:
				x, got = &row.Value[at*row.ValueStep+j], g.Value[at*size[2]+j]
			case 3:
				x, got = &row.Rate[at*row.RateStep], g.Rate[at]
			case 4:
				x, got = &row.State[i*size[2]+j], g.State[i*size[2]+j]
			case 5:
				x, got = &row.Decay[at*row.DecayStep], g.LogDecay[at]
				got /= *x
			}
			old, h := *x, float32(1)/512
			*x = old + h
			up, high := loss(), *x
			*x = old - h
			down, low := loss(), *x
			*x = old
			want := (up - down) / (float64(high) - float64(low))
			if math.Abs(want-float64(got)) > 2e-4*(1+math.Abs(want)) {
				t.Errorf("%v: gradient %d of token %d is %v, want %v", size, of, at, got, want)
			}
		}
	}
}

// TestBackward_SameBits: gradients are the same at all levels.
func TestBackward_SameBits(t *testing.T) {
	for _, size := range sizes {
		row := random(rand.New(rand.NewPCG(seed, 4)), size[0], size[1], size[2])
		want, _ := gradients(rand.New(rand.NewPCG(seed, 5)), cpuid.Portable, row)
		for _, l := range cpuid.Supported()[1:] {
			got, _ := gradients(rand.New(rand.NewPCG(seed, 5)), l, row)
			for i, pair := range [][2][]float32{{want.Query, got.Query}, {want.Key, got.Key}, {want.Value, got.Value},
				{want.LogDecay, got.LogDecay}, {want.Rate, got.Rate}, {want.State, got.State}} {
				sameBits(t, fmt.Sprint(l, size, i), pair[0], pair[1])
			}
		}
	}
}

// FuzzForward_SameBits: levels agree on numbers of any bits that are finite, infinite or denormal.
func FuzzForward_SameBits(f *testing.F) {
	f.Add(uint64(1), byte(3))
	f.Add(uint64(2), byte(40))
	f.Fuzz(func(t *testing.T, seed uint64, columns byte) {
		r := rand.New(rand.NewPCG(seed, 6))
		row := random(r, 3, 5, int(columns)%80+1)
		for _, list := range [][]float32{row.Key, row.Value, row.State} {
			list[r.IntN(len(list))] = math.Float32frombits(r.Uint32())
		}
		run(cpuid.Portable, row)
		want := append(slices.Clone(row.Output), row.Next...)
		for _, l := range cpuid.Supported()[1:] {
			run(l, row)
			for i, got := range append(slices.Clone(row.Output), row.Next...) {
				if got != want[i] && !(math.IsNaN(float64(got)) && math.IsNaN(float64(want[i]))) {
					t.Fatalf("%v: element %d is %v, want %v", l, i, got, want[i])
				}
			}
		}
	})
}
