package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/internal/ggml"
)

func BenchmarkQuantized(b *testing.B) {
	const k, n = 1536, 8960
	rng := rand.New(rand.NewPCG(1, 1))
	kernels := New(cpuid.Supported()[0])
	type matrix struct {
		name string
		p    *Packed
	}
	full := NewPacked(make([]float32, PackedSize(k, n)), k, n)
	for i := range full.full {
		full.full[i] = rng.Float32()
	}
	list := []matrix{{"float32", full}}
	for _, t := range []ggml.Type{ggml.Q4_K, ggml.Q6_K, ggml.Q5_K, ggml.Q4_0, ggml.Q8_0} {
		p, _ := randomQuantized(rng, t, k, n)
		list = append(list, matrix{t.String(), p})
	}
	for _, m := range []int{1, 2, 4, 6, 16, 128, 512} {
		a := make([]float32, m*max(k, n))
		for i := range a {
			a[i] = rng.Float32()
		}
		c := make([]float32, m*max(k, n))
		for _, x := range list {
			for _, t := range []bool{false, true} {
				if t && m < 16 {
					continue
				}
				b.Run(fmt.Sprintf("%d/%s/T=%v", m, x.name, t), func(b *testing.B) {
					for b.Loop() {
						if t {
							kernels.MulPackedT(nil, Out{c, k}, View{a, n, 1}, x.p, m, false)
						} else {
							kernels.MulPacked(nil, Out{c, n}, View{a, k, 1}, x.p, m, false)
						}
					}
					b.ReportMetric(float64(k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gw/s")
					b.ReportMetric(float64(2*m*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
