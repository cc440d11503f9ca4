package vec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// digest is of the results of every operation, at every level of every processor.
const digest = "f279a72b62389b925dda8c8f39cfa1878973d337738579693b69664db9315c0e"

// results runs every operation on the same numbers.
func results(l Level) (all []float32) {
	r := newRandom(23)
	const n = 1031
	x, y, w := random(r, n), random(r, n), moderate(r, n)
	dst := make([]float32, n)
	for op := range kernelsPortable.unary {
		UnaryFunc(l, UnaryOp(op))(dst, x)
		all = append(all, dst...)
	}
	for op := range kernelsPortable.binary {
		BinaryFunc(l, BinaryOp(op))(dst, x, y)
		all = append(all, dst...)
	}
	for _, f := range fusedTable {
		o := newFusedOperands(r, f, n)
		out := make([][]float32, len(f.Out))
		for i := range out {
			out[i] = make([]float32, n)
		}
		all = append(all, f.run(l, o, out))
		all = append(all, slices.Concat(out...)...)
	}
	return append(all, Sum(l, w), Max(l, w), Min(l, w))
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
