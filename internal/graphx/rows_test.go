package graphx

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// numRows are the numbers of rows of the products compared, on both sides of 4 Mi multiply-adds, where the device changes
// its kernel: 2,048 rows of a panel of 128 and 32 columns are 8 Mi.
var numRows = []int{1, 2, 3, 4, 7, 8, 16, 64, 512, 2048}

// differentRow multiplies matrices [M, K] that are made of the same 7 rows, in an order that puts each of them at many
// positions, by one w [K, N]. It returns the largest difference between a row of a result and the product of that row
// alone, and the M at which a bit differed first, 0 for none.
func differentRow(t *testing.T, exec *graph.Exec, k, n int) (first int, largest float64) {
	const distinct = 7
	src := rand.New(rand.NewPCG(seed, uint64(k*10_000+n)))
	x, w := normal[float32](src, distinct*k), tensor(normal[float32](src, k*n), k, n)
	defer w.MustFinalizeAll()
	var alone [][]float32
	for row := range slices.Chunk(x, k) {
		alone = append(alone, call[float32](t, exec, tensor(row, 1, k), w))
	}
	for _, m := range numRows {
		var rows []float32
		for i := range m {
			which := (i*5 + 3) % distinct
			rows = append(rows, x[which*k:(which+1)*k]...)
		}
		for i, y := range slices.Collect(slices.Chunk(call[float32](t, exec, tensor(rows, m, k), w), n)) {
			for j, want := range alone[(i*5+3)%distinct] {
				if math.Float32bits(want) != math.Float32bits(y[j]) && first == 0 {
					first = m
				}
				largest = max(largest, math.Abs(float64(want-y[j])))
			}
		}
	}
	return first, largest
}

// TestProduct_RowsDoNotDependOnTheirNumber pins what makes a token's logprob independent of its neighbours: with columns
// in whole vectors, and at least two of them, a row of a product has the same bits whatever else is in the matrix.
func TestProduct_RowsDoNotDependOnTheirNumber(t *testing.T) {
	exec := productExec(t)
	for _, k := range []int{1, 16, 64, 128, 129, 256, 300} {
		for _, n := range []int{2 * Lanes, 3 * Lanes, 7 * Lanes} {
			first, largest := differentRow(t, exec, k, n)
			require.Zero(t, first, "K %d, N %d: another result from %d rows on, by up to %g (seed %d)", k, n, first, largest, seed)
		}
	}
}

// TestProduct_BatchesDoNotDependOnTheirNumber is the same for the leading axes: attention has one for each sequence and
// one for each head.
func TestProduct_BatchesDoNotDependOnTheirNumber(t *testing.T) {
	exec := productExec(t)
	src := rand.New(rand.NewPCG(seed, 3))
	const m, k, n, most = 12, 160, 64, 48 // 48 batches of a panel are 4.7 Mi multiply-adds
	x, w := normal[float32](src, most*m*k), normal[float32](src, most*k*n)
	whole := call[float32](t, exec, tensor(x, most, m, k), tensor(w, most, k, n))
	for _, b := range []int{1, 2, 5, 24} {
		for at := 0; at+b <= most; at += b {
			part := call[float32](t, exec, tensor(x[at*m*k:(at+b)*m*k], b, m, k), tensor(w[at*k*n:(at+b)*k*n], b, k, n))
			require.Equal(t, whole[at*m*n:(at+b)*m*n], part, "%d batches at %d (seed %d)", b, at, seed)
		}
	}
}

// TestProduct_ZerosBehindChangeNothing: contracting over more zeros, as attention does over the empty part of a cache,
// gives the same bits.
func TestProduct_ZerosBehindChangeNothing(t *testing.T) {
	exec := productExec(t)
	src := rand.New(rand.NewPCG(seed, 4))
	const m, n = 5, 32
	for _, k := range []int{16, 32, 112, 128, 144} {
		x, w := normal[float32](src, m*k), normal[float32](src, k*n)
		short := call[float32](t, exec, tensor(x, m, k), tensor(w, k, n))
		for _, more := range []int{k + 16, 128, 256, 304} {
			if more < k {
				continue
			}
			var longer []float32
			for row := range slices.Chunk(x, k) {
				longer = append(append(longer, row...), make([]float32, more-k)...)
			}
			rows := append(slices.Clone(w), normal[float32](src, (more-k)*n)...) // what zeros meet does not matter
			long := call[float32](t, exec, tensor(longer, m, more), tensor(rows, more, n))
			require.Equal(t, short, long, "K %d with zeros up to %d (seed %d)", k, more, seed)
		}
	}
}

// TestDevice_WhatDependsOnRows logs where GoMLX's Go device gives a row other bits in another company, which is why
// Product cuts contractions, packages lora and model keep to whole vectors, and weights lie as [in, out]. That is the
// device's business, so nothing here fails: when a line says "same bits", a rule of ours may have become superfluous.
//
// Measured with compute v0.1.6: see docs/log.md, 2026-11-21. With AVX2 few columns are no exception. Without
// GOEXPERIMENT=simd every line is one: plain Go computes three rows at a time, and adds up the last one or two of a
// matrix in another order. Product pads rows for that.
func TestDevice_WhatDependsOnRows(t *testing.T) {
	device := newDevice(t)
	dot := func(axis int) func(t *testing.T, device compute.Backend) *graph.Exec {
		return func(t *testing.T, device compute.Backend) *graph.Exec {
			return newExec(t, device, func(in []*graph.Node) *graph.Node {
				w := in[1]
				if axis == 1 {
					w = graph.Transpose(w, 0, 1)
				}
				return graph.DotGeneral(in[0], []int{1}, nil, w, []int{axis}, nil)
			})
		}
	}
	for _, c := range []struct {
		name string
		exec func(t *testing.T, device compute.Backend) *graph.Exec
		k, n int
	}{
		{"8 columns", dot(0), 128, 8},
		{"16 columns", dot(0), 128, Lanes},
		{"40 columns, 2.5 vectors", dot(0), 128, 40},
		{"a contraction of 129 in one product", dot(0), 129, 64},
		{"a contraction of 300 in one product", dot(0), 300, 64},
		{"a contraction of 1000 in one product", dot(0), 1000, 64},
		{"weights transposed in the graph", dot(1), 128, 64},
	} {
		first, largest := differentRow(t, c.exec(t, device), c.k, c.n)
		if first == 0 {
			t.Logf("%s: same bits for every number of rows", c.name)
		} else {
			t.Logf("%s: other bits from %d rows on, by up to %.2g", c.name, first, largest)
		}
	}
}
