package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// layouts of an operand
const (
	plain      = "plain"      // rows are contiguous
	transposed = "transposed" // columns are contiguous
	packed     = "packed"
	packedT    = "packed-transposed"
	packed16   = "packed-bf16"
)

// job is a matmul that is measured.
type job struct {
	name    string
	m, n, k int
	a, b    string
	batch   int
}

var jobs = []job{
	{"square", 512, 512, 512, plain, plain, 1},
	{"square", 1024, 1024, 1024, plain, plain, 1},
	{"square", 1024, 1024, 1024, plain, transposed, 1},
	{"square", 1024, 1024, 1024, transposed, plain, 1},
	{"square", 2048, 2048, 2048, plain, plain, 1},
	{"square", 2048, 2048, 2048, plain, packed, 1},
	{"layer", 2048, 4864, 896, plain, packed, 1},
	{"layer", 2048, 4864, 896, plain, packed16, 1},
	{"layer", 2048, 896, 4864, plain, packed, 1},
	{"layer-back", 2048, 896, 4864, plain, packedT, 1},
	{"skinny", 2, 4864, 896, plain, plain, 1}, {"skinny", 2, 4864, 896, plain, transposed, 1}, {"skinny", 2, 4864, 896, plain, packed, 1},
	{"skinny", 4, 4864, 896, plain, plain, 1}, {"skinny", 4, 4864, 896, plain, transposed, 1}, {"skinny", 4, 4864, 896, plain, packed, 1},
	{"skinny", 8, 4864, 896, plain, plain, 1}, {"skinny", 8, 4864, 896, plain, transposed, 1}, {"skinny", 8, 4864, 896, plain, packed, 1},
	{"skinny", 8, 4864, 896, plain, packed16, 1},
	{"skinny", 16, 4864, 896, plain, plain, 1}, {"skinny", 16, 4864, 896, plain, transposed, 1}, {"skinny", 16, 4864, 896, plain, packed, 1},
	{"skinny", 32, 4864, 896, plain, plain, 1}, {"skinny", 32, 4864, 896, plain, transposed, 1}, {"skinny", 32, 4864, 896, plain, packed, 1},
	{"skinny", 64, 4864, 896, plain, plain, 1}, {"skinny", 64, 4864, 896, plain, transposed, 1}, {"skinny", 64, 4864, 896, plain, packed, 1},
	{"vector", 1, 4864, 896, plain, plain, 1}, {"vector", 1, 4864, 896, plain, transposed, 1}, {"vector", 1, 4864, 896, plain, packed, 1},
	{"vector", 1, 4864, 896, plain, packed16, 1},
	{"head", 1, 151936, 896, plain, plain, 1}, {"head", 1, 151936, 896, plain, transposed, 1}, {"head", 1, 151936, 896, plain, packed, 1},
	{"head", 1, 151936, 896, plain, packed16, 1},
	{"head", 2, 151936, 896, plain, packed, 1}, {"head", 4, 151936, 896, plain, packed, 1},
	{"head", 8, 151936, 896, plain, plain, 1}, {"head", 8, 151936, 896, plain, transposed, 1}, {"head", 8, 151936, 896, plain, packed, 1},
	{"head", 8, 151936, 896, plain, packed16, 1}, {"head", 16, 151936, 896, plain, packed, 1},
	{"lora-down", 2048, 8, 896, plain, plain, 1}, {"lora-up", 2048, 896, 8, plain, plain, 1},
	{"lora-down", 2048, 8, 896, plain, transposed, 1}, {"lora-up", 2048, 896, 8, plain, transposed, 1},
	{"lora-grad", 896, 8, 2048, transposed, plain, 1}, {"lora-grad", 8, 896, 2048, transposed, plain, 1},
	{"attention", 256, 256, 64, plain, transposed, 14}, {"attention", 256, 64, 256, plain, plain, 14},
	{"tiny", 16, 256, 128, plain, plain, 1}, {"tiny", 64, 128, 256, plain, plain, 1}, {"tiny", 64, 128, 128, plain, packed, 1},
	{"tiny", 16, 16, 32, plain, transposed, 4},
}

func random(rows, columns int, layout string) View {
	r := rand.New(rand.NewPCG(1, 1))
	v := View{make([]float32, rows*columns), columns, 1}
	if layout == transposed || layout == packedT {
		v.Row, v.Col = 1, rows
	}
	for i := range v.Data {
		v.Data[i] = r.Float32() - 0.5
	}
	return v
}

// run prepares a job and returns what does it.
func (j job) run(k *Kernels, p *pool.Pool) func() {
	a, b := random(j.batch*j.m, j.k, j.a), random(j.k, j.batch*j.n, j.b)
	c := make([]float32, j.batch*j.m*j.n)
	switch j.b {
	case packed:
		w := packView(b, j.k, j.n)
		return func() { k.MulPacked(p, Out{c, j.n}, a, w, j.m, false) }
	case packed16:
		half := make([]uint16, len(b.Data))
		w := packHalf(half, b.Row, b.Col, j.k, j.n)
		return func() { k.MulPacked(p, Out{c, j.n}, a, w, j.m, false) }
	case packedT:
		w := packView(b.T(), j.n, j.k)
		return func() { k.MulPackedT(p, Out{c, j.n}, a, w, j.m, false) }
	}
	if j.batch == 1 {
		return func() { k.Mul(p, Matmul{Out{c, j.n}, a, b, j.m, j.n, j.k, false}) }
	}
	axes := []Axis{{j.batch, j.m * a.Row, j.n * b.Col, j.m * j.n}}
	return func() { k.MulBatch(p, axes, Matmul{Out{c, j.n}, a, b, j.m, j.n, j.k, false}) }
}

// bytes is the size of a job's B.
func (j job) bytes() float64 {
	size := 4
	if j.b == packed16 {
		size = 2
	}
	return float64(size * j.batch * j.n * j.k)
}

func BenchmarkMul(b *testing.B) {
	level, err := cpuid.Default()
	if err != nil {
		b.Fatal(err)
	}
	k, p := New(level), pool.New(0)
	defer p.Close()
	for _, j := range jobs {
		b.Run(fmt.Sprintf("%s/%dx%dx%d/%dx/%s/%s", j.name, j.m, j.n, j.k, j.batch, j.a, j.b), func(b *testing.B) {
			run := j.run(k, p)
			seconds := best(b, run)
			b.ReportMetric(2*float64(j.batch*j.m)*float64(j.n)*float64(j.k)/seconds/1e9, "GFLOP/s")
			b.ReportMetric(j.bytes()/seconds/1e9, "GB/s")
		})
	}
}

// The matmuls of a pass of a small Qwen3 through its layers, each with weights of its own, which come from memory.
func BenchmarkLayers(b *testing.B) {
	level, err := cpuid.Default()
	if err != nil {
		b.Fatal(err)
	}
	k, p := New(level), pool.New(0)
	defer p.Close()
	shapes := [][2]int{{1024, 2048}, {2048, 1024}, {1024, 3072}, {3072, 1024}}
	var full, half []*Packed
	size := 0
	for range 28 {
		for _, s := range shapes {
			x := random(s[0], s[1], plain)
			full = append(full, packView(x, s[0], s[1]))
			half = append(half, packHalf(make([]uint16, len(x.Data)), x.Row, x.Col, s[0], s[1]))
			size += s[0] * s[1]
		}
	}
	c := make([]float32, 256*3072)
	for _, m := range []int{1, 2, 4, 8, 16, 64, 256} {
		a := random(m, 3072, plain)
		for name, weights := range map[string][]*Packed{"f32": full, "bf16": half} {
			b.Run(fmt.Sprintf("%d/%s", m, name), func(b *testing.B) {
				seconds := best(b, func() {
					for _, w := range weights {
						k.MulPacked(p, Out{c, w.N}, a, w, m, false)
					}
				})
				width := map[string]int{"f32": 4, "bf16": 2}[name]
				b.ReportMetric(float64(width*size)/seconds/1e9, "GB/s")
				b.ReportMetric(float64(2*m*size)/seconds/1e9, "GFLOP/s")
			})
		}
	}
}

// best runs a benchmark and returns the least time of a call, in seconds: other programs only ever add to it.
func best(b *testing.B, run func()) float64 {
	run()
	start := time.Now()
	run()
	calls := 1 + int(20*time.Microsecond/(time.Since(start)+1))
	least := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		for range calls {
			run()
		}
		least = min(least, time.Since(start))
	}
	b.ReportMetric(float64(least.Nanoseconds())/float64(calls), "best-ns")
	return least.Seconds() / float64(calls)
}

func BenchmarkRead(b *testing.B) {
	level, err := cpuid.Default()
	if err != nil {
		b.Fatal(err)
	}
	k, p := New(level), pool.New(0)
	defer p.Close()
	for _, n := range []int{4864 * 896, 151936 * 896} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := random(1, n, plain).Data
			seconds := best(b, func() { k.Read(p, x) })
			b.ReportMetric(4*float64(n)/seconds/1e9, "GB/s")
		})
	}
}

// The matmuls of attention of a few rows to keys and values that come from memory, each head computed by one worker:
// what decoding does.
func BenchmarkHeads(b *testing.B) {
	level, err := cpuid.Default()
	if err != nil {
		b.Fatal(err)
	}
	k, p := New(level), pool.New(0)
	defer p.Close()
	const heads, keys, size = 200, 2048, 128
	cache := random(heads*keys, size, plain).Data
	for _, m := range []int{1, 2, 4, 8, 16, 24} {
		q, scores := random(m, size, plain), random(m, keys, plain)
		bench := func(name string, run func(part []float32)) {
			b.Run(fmt.Sprintf("%s/%d", name, m), func(b *testing.B) {
				seconds := best(b, func() {
					p.For(heads, func(i int) { run(cache[i*keys*size:][:keys*size]) })
				})
				b.ReportMetric(4*float64(len(cache))/seconds/1e9, "GB/s")
				b.ReportMetric(2*float64(m*len(cache))/seconds/1e9, "GFLOP/s")
			})
		}
		bench("keys", func(part []float32) {
			c := make([]float32, m*keys)
			k.Mul(nil, Matmul{Out{c, keys}, q, View{part, 1, size}, m, keys, size, false})
		})
		bench("values", func(part []float32) {
			c := make([]float32, m*size)
			k.Mul(nil, Matmul{Out{c, size}, scores, View{part, size, 1}, m, size, keys, false})
		})
	}
}
