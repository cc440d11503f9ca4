package safetensors

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// allHalves is a tensor of every 16-bit pattern.
func allHalves(dtype DType) Tensor {
	t := Tensor{"all", dtype, []int{1 << 16}, make([]byte, 2<<16)}
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(t.Data[2*i:], uint16(i))
	}
	return t
}

// checkHalves compares every pattern with the definition of its number
//
//	(-1)^sign * 2^(exponent-bias) * (1 + mantissa/2^bits)    exponent > 0
//	(-1)^sign * 2^(1-bias) * mantissa/2^bits                 exponent = 0
//
// and a NaN by its bits.
func checkHalves(t *testing.T, dtype DType, bits, bias int) {
	values, err := allHalves(dtype).Float32s()
	require.NoError(t, err)
	require.Len(t, values, 1<<16)
	top := 1<<(15-bits) - 1
	for i, got := range values {
		sign, exponent, mantissa := i>>15, i>>bits&top, i&(1<<bits-1)
		fraction := float64(mantissa) / float64(int(1)<<bits)
		want := math.Ldexp(1+fraction, exponent-bias)
		switch {
		case exponent == 0:
			want = math.Ldexp(fraction, 1-bias)
		case exponent == top && mantissa != 0:
			require.Equal(t, uint32(sign<<31|0xff<<23|mantissa<<(23-bits)), math.Float32bits(got), "%s %04x", dtype, i)
			continue
		case exponent == top:
			want = math.Inf(1)
		}
		want = math.Copysign(want, float64(1-2*sign))
		require.Equal(t, math.Float32bits(float32(want)), math.Float32bits(got), "%s %04x", dtype, i)
	}
}

func TestFloat32s_F16(t *testing.T)  { checkHalves(t, F16, 10, 15) }
func TestFloat32s_BF16(t *testing.T) { checkHalves(t, BF16, 7, 127) }

func TestFloat32s_F32(t *testing.T) {
	bits := []uint32{0, 1 << 31, 1, 0x7f800000, 0xff800000, 0x7fc00001, 0xffc12345, 0x7fa00000, 0x3f800000, 0x007fffff}
	values := make([]float32, len(bits))
	for i, b := range bits {
		values[i] = math.Float32frombits(b)
	}
	tensor := NewFloat32("t", []int{len(bits)}, values)
	got, err := tensor.Float32s()
	require.NoError(t, err)
	for i, b := range bits {
		require.Equal(t, b, math.Float32bits(got[i]))
	}
	got[0] = 9
	require.Equal(t, byte(0), tensor.Data[3], "the slice is new")
}

func TestFloat32s_Refused(t *testing.T) {
	for want, tensor := range map[string]Tensor{
		"only F32, F16 and BF16":         {"t", "F64", []int{1}, make([]byte, 8)},
		"needs 8 bytes and there are 4":  {"t", F32, []int{2}, make([]byte, 4)},
		`unknown dtype "F128"`:           {"t", "F128", nil, nil},
		"negative dimension":             {"t", F32, []int{-1}, nil},
		"overflows":                      {"t", F32, []int{1 << 40, 1 << 40}, nil},
		"does not fill whole bytes":      {"t", "F4", []int{3}, make([]byte, 2)},
		"65 dimensions, more than 64":    {"t", F32, make([]int, 65), nil},
		"needs 3 bytes and there are 99": {"t", "F6_E2M3", []int{4}, make([]byte, 99)},
	} {
		_, err := tensor.Float32s()
		require.ErrorContains(t, err, want)
		require.NotErrorIs(t, err, ErrFormat)
	}
}

func TestDType_Bits(t *testing.T) {
	require.Equal(t, 16, BF16.Bits())
	require.Equal(t, 6, DType("F6_E3M2").Bits())
	require.Zero(t, DType("F128").Bits())
}
