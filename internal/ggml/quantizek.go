package ggml

import (
	"encoding/binary"
	"math"

	"github.com/goart-dev/art/internal/float16"
)

// linear says how the codes of a group of 32 are looked for, which stand for s·q - m.
type linear struct {
	most  int32   // the largest code
	first float32 // lines of most + first, most + first + 0.1, ... codes for the range are tried
	steps int     // how many more than the first
}

// delta is the step between lines, and between the scales of Q6_K.
const delta float32 = 0.1

func quantizeQ4K(b []byte, x []float32) (d, m uint16) {
	var q [256]uint8
	d, m = linear{most: 15, first: -1, steps: 20}.block(&q, b, x)
	for part := range 4 { // of 64: low nibbles, then high nibbles
		for l := range 32 {
			b[16+32*part+l] = q[64*part+l] | q[64*part+32+l]<<4
		}
	}
	return d, m
}

func quantizeQ5K(b []byte, x []float32) (d, m uint16) {
	var q [256]uint8
	d, m = linear{most: 31, first: -0.5, steps: 15}.block(&q, b, x)
	clear(b[16:48])
	for part := range 4 {
		for l := range 32 {
			low, high := q[64*part+l], q[64*part+32+l]
			b[48+32*part+l] = low&15 | high<<4
			b[16+l] |= (low>>4 | high>>4<<1) << (2 * part)
		}
	}
	return d, m
}

// block finds the codes of a super-block, and writes its scales: those of its groups are rounded to whole numbers of
// six bits, and the codes are rounded again for these.
func (f linear) block(q *[256]uint8, b []byte, x []float32) (d, m uint16) {
	var scales, minima [8]float32
	var mostScale, mostMinimum float32
	for g := range 8 {
		s, n := f.fit(q[32*g:][:32], x[32*g:][:32])
		if s > mostScale {
			mostScale = s
		}
		if n > mostMinimum {
			mostMinimum = n
		}
		scales[g], minima[g] = s, n
	}
	d, m = float16.FromFloat32(mostScale/63), float16.FromFloat32(mostMinimum/63)
	binary.LittleEndian.PutUint16(b, d)
	binary.LittleEndian.PutUint16(b[2:], m)
	var s Split
	for g := range 8 {
		s.S[g], s.N[g] = int8(toSixBits(scales[g], mostScale)), toSixBits(minima[g], mostMinimum)
	}
	s.putSixBits(b[4:16])
	for g := range 8 {
		scale := float16.Float32(d) * float32(s.S[g])
		if scale == 0 {
			continue
		}
		minimum := float32(float16.Float32(m) * float32(s.N[g]))
		for i, v := range x[32*g:][:32] {
			q[32*g+i] = uint8(min(max(nearest((v+minimum)/scale), 0), f.most))
		}
	}
	return d, m
}

// toSixBits rounds v to 63rds of the largest.
func toSixBits(v, most float32) uint8 {
	inverse := float32(0)
	if most > 0 {
		inverse = 63 / most
	}
	return min(uint8(nearest(float32(inverse*v))), 63) //nolint:gosec // a negative number becomes 63 this way, as in ggml
}

// fit sets the codes of a group so that the squares of s·q - m - x, weighted, add up to little: it tries the line
// through the extremes, then least squares for the codes of lines that are somewhat steeper or flatter.
func (f linear) fit(q []uint8, x []float32) (s, m float32) {
	w := weigh(x)
	low, high, sumW, sumX := x[0], x[0], w[0], float32(w[0]*x[0])
	for i := 1; i < len(x); i++ {
		if x[i] < low {
			low = x[i]
		}
		if x[i] > high {
			high = x[i]
		}
		sumW += w[i]
		sumX += float32(w[i] * x[i])
	}
	if low > 0 {
		low = 0
	}
	if low == high {
		clear(q)
		return 0, -low
	}
	inverse := float32(f.most) / (high - low)
	s = 1 / inverse
	f.round(q, x, inverse, low)
	best := squares(q, x, &w, s, low)
	var tried [32]uint8
	for step := range f.steps + 1 {
		inverse = (f.first + float32(delta*float32(step)) + float32(f.most)) / (high - low)
		f.round(tried[:], x, inverse, low)
		var sumQ, sumQ2, sumXQ float32
		for i, v := range x {
			code := float32(tried[i])
			wq := float32(w[i] * code)
			sumQ += wq
			sumQ2 += float32(wq * code)
			sumXQ += float32(wq * v)
		}
		det := float32(sumW*sumQ2) - float32(sumQ*sumQ)
		if !(det > 0) {
			continue
		}
		scale := (float32(sumW*sumXQ) - float32(sumX*sumQ)) / det
		minimum := (float32(sumQ2*sumX) - float32(sumQ*sumXQ)) / det
		if minimum > 0 {
			scale, minimum = sumXQ/sumQ2, 0
		}
		if e := squares(tried[:], x, &w, scale, minimum); e < best {
			copy(q, tried[:])
			best, s, low = e, scale, minimum
		}
	}
	return s, -low
}

// weigh returns the weights of a group: the root of the mean square, plus the magnitude of the element.
func weigh(x []float32) (w [32]float32) {
	sum := float32(0)
	for _, v := range x {
		sum += float32(v * v)
	}
	mean := float32(math.Sqrt(float64(sum / 32)))
	for i, v := range x {
		w[i] = mean + float32(math.Abs(float64(v)))
	}
	return w
}

func (f linear) round(q []uint8, x []float32, inverse, low float32) {
	for i, v := range x {
		q[i] = uint8(min(max(nearest(float32(inverse*(v-low))), 0), f.most))
	}
}

// squares adds up the weighted squares of the differences.
func squares(q []uint8, x []float32, w *[32]float32, scale, low float32) (sum float32) {
	for i, v := range x {
		diff := float32(scale*float32(q[i])) + low - v
		sum += float32(w[i] * float32(diff*diff))
	}
	return sum
}

// nearest rounds to a whole number, ties to even: that of a sum in which whole numbers are the last bits. Numbers
// beyond 2^22 and NaN have other results, the same as in ggml.
func nearest(v float32) int32 {
	return int32(math.Float32bits(v+0x1.8p23)&0x7fffff) - 0x400000
}

// putSixBits is the inverse of sixBits.
func (s *Split) putSixBits(b []byte) {
	for i := range 4 {
		low, high := uint8(s.S[i+4]), s.N[i+4] //nolint:gosec // six bits
		b[i] = uint8(s.S[i]) | low>>4<<6       //nolint:gosec // as above
		b[i+4] = s.N[i] | high>>4<<6
		b[i+8] = low&15 | high<<4
	}
}

// quantizeQ6K: codes of -32 to 31 with the scales of groups of 16, which are rounded to whole numbers of -128 to 127.
func quantizeQ6K(b []byte, x []float32) (d, m uint16) {
	var q [256]uint8 // the codes, plus 32
	var scales [16]float32
	most := float32(0) // of the largest magnitude
	for g := range scales {
		scales[g] = fitSigned(q[16*g:][:16], x[16*g:][:16])
		if math.Abs(float64(scales[g])) > math.Abs(float64(most)) {
			most = scales[g]
		}
	}
	if isTiny(most) {
		clear(b)
		return 0, 0
	}
	inverse := -128 / most
	d = float16.FromFloat32(1 / inverse)
	binary.LittleEndian.PutUint16(b[208:], d)
	for g, s := range scales {
		rounded := int8(min(nearest(float32(inverse*s)), 127)) //nolint:gosec // it is -128 at least
		b[192+g] = uint8(rounded)                              //nolint:gosec // the bits of a signed number
		scale := float16.Float32(d) * float32(rounded)
		if scale == 0 {
			continue
		}
		for i, v := range x[16*g:][:16] {
			q[16*g+i] = signedCode(v / scale)
		}
	}
	for half := range 2 { // four parts of 32: low nibbles of 64 bytes, then their high nibbles
		low, upper, q := b[64*half:][:64], b[128+32*half:][:32], q[128*half:][:128]
		for l := range 32 {
			low[l] = q[l]&15 | q[l+64]<<4
			low[l+32] = q[l+32]&15 | q[l+96]<<4
			upper[l] = q[l]>>4 | q[l+32]>>4<<2 | q[l+64]>>4<<4 | q[l+96]>>4<<6
		}
	}
	return d, 0
}

// isTiny reports whether a scale or an element is taken as zero.
func isTiny(v float32) bool { return v < 1e-15 && v > -1e-15 }

// signedCode is the code of a number, plus 32.
func signedCode(v float32) uint8 { return uint8(min(max(nearest(v), -32), 31) + 32) }

// fitSigned sets the codes of a group so that the squares of s·(q - 32) - x, weighted by x², add up to little: it tries
// the scale at which the element of largest magnitude becomes -32, and scales around it.
func fitSigned(q []uint8, x []float32) (s float32) {
	most := x[absMax(x)]
	if isTiny(most) {
		clear(q)
		return 0
	}
	inverse := -32 / most
	sumX, sum2 := sums(x, inverse)
	if sum2 != 0 {
		s = sumX / sum2
	}
	best, chosen := float32(s*sumX), inverse
	for step := -9; step <= 9; step++ {
		if step == 0 {
			continue
		}
		inverse = -(32 + float32(delta*float32(step))) / most
		sumX, sum2 = sums(x, inverse)
		if sum2 > 0 && float32(sumX*sumX) > float32(best*sum2) {
			s = sumX / sum2
			best, chosen = float32(s*sumX), inverse
		}
	}
	for i, v := range x {
		q[i] = signedCode(float32(chosen * v))
	}
	return s
}

// sums adds up w·x·q and w·q², of which the quotient is the best scale for the codes, and w = x².
func sums(x []float32, inverse float32) (sumX, sum2 float32) {
	for _, v := range x {
		code := float32(int32(signedCode(float32(inverse*v))) - 32)
		w := float32(v * v)
		sumX += float32(float32(w*v) * code)
		sum2 += float32(float32(w*code) * code)
	}
	return sumX, sum2
}
