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

// BenchmarkIntegers compares products of integers with those of the numbers, in turns, on one thread, with matrices
// that come from memory: the ratio is the time of those over the time of these.
func BenchmarkIntegers(b *testing.B) {
	const k, n, copies = 1536, 8960, 12
	rng := rand.New(rand.NewPCG(1, 1))
	levels := cpuid.Supported()
	kernels := New(levels[len(levels)-1])
	a, c := make([]float32, 512*k), make([]float32, 512*n)
	for i := range a {
		a[i] = float32(rng.NormFloat64())
	}
	var none *pool.Pool
	for _, t := range []ggml.Type{ggml.Q4_K, ggml.Q6_K, ggml.Q5_K, ggml.Q8_0} {
		one, _ := randomQuantized(rng, t, k, n)
		var list []*Packed
		for range copies {
			list = append(list, one.In(append([]byte(nil), one.bytes...)))
		}
		for _, m := range []int{1, 2, 4, 8, 16, 64, 512} {
			b.Run(fmt.Sprintf("%v/%d", t, m), func(b *testing.B) {
				var spent [2]time.Duration
				for i := 0; b.Loop(); i++ {
					for j := range spent {
						p := list[(i*2+j)%copies]
						p.Int8 = j == 1
						begin := time.Now()
						kernels.MulPacked(none, Out{c, n}, View{a, k, 1}, p, m, false)
						spent[j] += time.Since(begin)
					}
				}
				b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "ratio")
				b.ReportMetric(float64(2*m*k*n)*float64(b.N)/spent[1].Seconds()/1e9, "GOP/s")
				b.ReportMetric(float64(k*n)*float64(b.N)/spent[1].Seconds()/1e9, "Gw/s")
			})
		}
	}
}
