package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"github.com/goart-dev/art/internal/ggml"
)

// BenchmarkQuantized measures products with quantized matrices on two workers, each in turn with the same product with
// a float32 matrix: float32/x is the time of that over its own. Matrices come from memory, as those of a model do.
// A negative number of rows is that of a product with the transposed matrix, as for a gradient.
func BenchmarkQuantized(b *testing.B) {
	const k, n, bytes = 1536, 8960, 192 << 20
	rng := rand.New(rand.NewPCG(1, 1))
	level, err := cpuid.Default()
	if err != nil {
		b.Fatal(err)
	}
	kernels, workers := New(level), pool.New(2)
	defer workers.Close()
	full := make([]*Packed, bytes/(4*k*n))
	for i := range full {
		full[i] = NewPacked(make([]float32, PackedSize(k, n)), k, n)
		for j := range full[i].full {
			full[i].full[j] = rng.Float32()
		}
	}
	const rows = 512
	a, c := make([]float32, rows*n), make([]float32, rows*n)
	for i := range a {
		a[i] = rng.Float32()
	}
	multiply := func(p *Packed, m int, transposed bool) time.Duration {
		began := time.Now()
		if transposed {
			kernels.MulPackedT(workers, Out{c, k}, View{a, n, 1}, p, m, false)
		} else {
			kernels.MulPacked(workers, Out{c, n}, View{a, k, 1}, p, m, false)
		}
		return time.Since(began)
	}
	for _, t := range []ggml.Type{ggml.Q4_K, ggml.Q6_K, ggml.Q5_K, ggml.Q4_0, ggml.Q8_0} {
		one, _ := randomQuantized(rng, t, k, n)
		list := make([]*Packed, bytes/len(one.bytes))
		for i := range list {
			list[i] = one.In(append([]byte(nil), one.bytes...))
		}
		for _, m := range []int{1, 2, 4, 6, 8, 16, 32, 64, 128, 512, -512} {
			rows, transposed := max(m, -m), m < 0
			b.Run(fmt.Sprintf("%v/%d", t, m), func(b *testing.B) {
				var whole, coded time.Duration
				for i := 0; b.Loop(); i++ {
					whole += multiply(full[i%len(full)], rows, transposed)
					coded += multiply(list[i%len(list)], rows, transposed)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(whole)/float64(coded), "float32/x")
				b.ReportMetric(float64(k*n)*float64(b.N)/coded.Seconds()/1e9, "Gw/s")
				b.ReportMetric(float64(2*rows*k*n)*float64(b.N)/coded.Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// BenchmarkPackQuantized packs matrices on two workers; a byte is one of the file.
func BenchmarkPackQuantized(b *testing.B) {
	const k, n = 1536, 8960
	workers := pool.New(2)
	defer workers.Close()
	for _, t := range []ggml.Type{ggml.Q4_K, ggml.Q6_K, ggml.Q5_K, ggml.Q4_0, ggml.Q8_0} {
		b.Run(t.String(), func(b *testing.B) {
			size, _ := QuantizedBytes(t, k, n)
			p := NewQuantized(t, make([]byte, size), k, n)
			file, row := make([]byte, t.Bytes(k*n)), t.Bytes(k)
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if err := PackQuantized(workers, p, 0, t, func(i int) []byte { return file[i*row:][:row] }, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
