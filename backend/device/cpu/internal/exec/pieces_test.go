package exec

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/compile"
	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// TestPieces_SameBits: a row that is reduced piece by piece gives the bits of the row reduced at once, with numbers
// that a sum rounds, zeros of both signs, and NaN.
func TestPieces_SameBits(t *testing.T) {
	level, err := cpuid.Default()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(11, 0))
	for _, op := range []compute.OpType{compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin} {
		k := reduceKernel(level, op, dtypes.Float32)
		for _, n := range []int{1, 63, 64, 2047, 2048, 2049, ir.SumChunk - 1, ir.SumChunk, ir.SumChunk + 1, 2 * ir.SumChunk,
			5*ir.SumChunk + 777} {
			for _, kind := range []string{"normal", "zeros", "NaN"} {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(r.NormFloat64())
					if kind == "zeros" {
						x[i] = float32(math.Copysign(0, float64(x[i])))
					}
				}
				if kind == "NaN" {
					x[r.IntN(n)] = float32(math.NaN())
				}
				var want, got float32
				k.rows(unsafe.Pointer(&want), unsafe.Pointer(&x[0]), 1, n)
				var sum partial
				k.pieces.begin(&sum)
				for at := 0; at < n; at += compile.PieceLength {
					end := min(n, at+compile.PieceLength)
					got = k.pieces.next(&sum, x[at:end], end == n)
				}
				if math.Float32bits(want) != math.Float32bits(got) && want == want {
					t.Errorf("%s of %d %s: %v at once, %v in pieces", op, n, kind, want, got)
				}
				if (want != want) != (got != got) {
					t.Errorf("%s of %d: NaN once only", op, n)
				}
			}
		}
	}
}
