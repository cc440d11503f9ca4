package vec

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// The benchmarks run on all workers, on the shapes of internal/dev/bench/vec/peers.py. The least time of a call is what
// to compare: other processes disturb the mean.

// bench is an operation on rows by columns elements. split does the rows from, to.
type bench struct {
	name  string
	bytes int // read and written, per element
	split func(rows, columns int) func(from, to int)
}

func benchData(n, count int) [][]float32 {
	r := newRandom(99)
	list := make([][]float32, count)
	for i := range list {
		list[i] = moderate(r, n)
	}
	return list
}

// elementwise makes the split of an operation that knows no rows.
func elementwise(count int, run func(d [][]float32)) func(rows, columns int) func(from, to int) {
	return func(rows, columns int) func(from, to int) {
		d := benchData(rows*columns, count)
		return func(from, to int) {
			var part [8][]float32
			for i := range d {
				part[i] = d[i][from*columns : to*columns]
			}
			run(part[:count])
		}
	}
}

// rowwise makes the split of an operation on rows.
func rowwise(count int, run func(d [][]float32, row, columns int)) func(rows, columns int) func(from, to int) {
	return func(rows, columns int) func(from, to int) {
		d := benchData(rows*columns, count)
		return func(from, to int) {
			var part [8][]float32
			for i := from; i < to; i++ {
				for j := range d {
					part[j] = d[j][i*columns : (i+1)*columns]
				}
				run(part[:count], i, columns)
			}
		}
	}
}

func benches(l Level) []bench {
	var sink [4096]float32
	unary := func(op UnaryOp) func(int, int) func(int, int) {
		return elementwise(2, func(d [][]float32) { UnaryFunc(l, op)(d[0], d[1]) })
	}
	return []bench{
		{"add", 12, elementwise(3, func(d [][]float32) { BinaryFunc(l, OpAdd)(d[0], d[1], d[2]) })},
		{"exp", 8, unary(OpExp)},
		{"log", 8, unary(OpLog)},
		{"sigmoid", 8, unary(OpSigmoid)},
		{"tanh", 8, unary(OpTanh)},
		{"sin", 8, unary(OpSin)},
		{"sum", 4, rowwise(1, func(d [][]float32, row, _ int) { sink[row] = Sum(l, d[0]) })},
		{"bfloat16", 6, func(rows, columns int) func(from, to int) {
			x, y := benchData(rows*columns, 1)[0], make([]uint16, rows*columns)
			return func(from, to int) { ToBfloat16(l, y[from*columns:to*columns], x[from*columns:]) }
		}},
		{"transpose", 8, func(rows, columns int) func(from, to int) {
			d := benchData(rows*columns, 2)
			c := NewCopy([]int{columns, rows}, []int{1, columns})
			return func(from, to int) {
				u := c.Units()
				Run(l, c, d[0], d[1], u*from/rows, u*to/rows)
			}
		}},
	}
}

func BenchmarkVec(b *testing.B) {
	p := pool.New(0)
	defer p.Close()
	for _, shape := range [][2]int{{2048, 2048}, {256, 896}} {
		for _, c := range benches(best()) {
			rows, columns := shape[0], shape[1]
			b.Run(fmt.Sprintf("%s/%dx%d", c.name, rows, columns), func(b *testing.B) {
				run, parts := c.split(rows, columns), p.Workers()
				b.SetBytes(int64(rows * columns * c.bytes))
				least := time.Duration(math.MaxInt64)
				for b.Loop() {
					begin := time.Now()
					p.For(parts, func(i int) { run(rows*i/parts, rows*(i+1)/parts) })
					least = min(least, time.Since(begin))
				}
				b.ReportMetric(float64(least.Nanoseconds()), "least-ns")
			})
		}
	}
}

// A call for a block that is in the cache.
func BenchmarkBlock(b *testing.B) {
	d := benchData(1024, 3)
	for _, n := range []int{16, 1024} {
		for _, l := range cpuid.Supported() {
			add, exp := BinaryFunc(l, OpAdd), UnaryFunc(l, OpExp)
			b.Run(fmt.Sprintf("add/%d/%v", n, l), func(b *testing.B) {
				for b.Loop() {
					add(d[0][:n], d[1][:n], d[2][:n])
				}
			})
			b.Run(fmt.Sprintf("exp/%d/%v", n, l), func(b *testing.B) {
				for b.Loop() {
					exp(d[0][:n], d[1][:n])
				}
			})
		}
	}
}
