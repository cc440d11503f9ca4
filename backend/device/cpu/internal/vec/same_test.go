package vec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// digest is of the results of every operation, at every level of every processor.
const digest = "bb04df1ed6e612d6cf779b29ece12ade1a92464604c1c95b6764108401615932"

// results runs every operation on the same numbers.
func results(l Level) (all []float32) {
	r := newRandom(23)
	const n = 1031
	x, y, z, w := random(r, n), random(r, n), moderate(r, n), moderate(r, n)
	dst, more := make([]float32, n), make([]float32, n)
	add := func() { all = append(append(all, dst...), more...) }
	for op := range unaryTable {
		Unary(l, UnaryOp(op), dst, x)
		add()
	}
	for op := range binaryTable {
		Binary(l, BinaryOp(op), dst, x, y)
		add()
	}
	Pow(more, x, y)
	MulAdd(l, dst, x, y, z)
	add()
	SwiGLU(l, dst, x, y)
	add()
	SwiGLUGrad(l, dst, more, x, y, z)
	add()
	Softmax(l, dst, z, n-1, 0.3)
	add()
	LogSoftmax(l, dst, z, n-1, 0.3)
	add()
	inv := RMSNorm(l, dst, z, w, 1e-6)
	add()
	RMSNormGrad(l, dst, w, z, w, inv)
	RMSNormWeightGrad(l, more, w, z, inv)
	add()
	Rotate(l, dst, x, z[:5], w[:5])
	RotateBack(l, more, x, z[:5], w[:5])
	add()
	Unary(l, OpSquare, more, w)
	AdamW{Rate: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Decay: 0.1, Step: 7}.Update(l, dst, z, more, w)
	add()
	return append(all, Sum(l, w), Dot(l, w, z), SumSquares(l, w), Max(l, w), Min(l, w))
}

func TestResults_SameEverywhere(t *testing.T) {
	for _, l := range cpuid.Supported() {
		h := sha256.New()
		for _, v := range results(l) {
			b := math.Float32bits(v)
			if isNaN(v) {
				b = 0x7fc00000
			}
			h.Write(binary.LittleEndian.AppendUint32(nil, b))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != digest {
			t.Errorf("%v: the digest of all results is %s", l, got)
		}
	}
}
