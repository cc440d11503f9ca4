package ggml

import (
	"encoding/binary"
)

// Layout is what all blocks of a quantized type have in common.
type Layout struct {
	Bits  int         // of a code: 4, 5 or 8; those of 8 bits are signed numbers and have no table
	Group int         // elements that share a scale
	Super bool        // scales of two levels: s and n differ between the groups of a block
	Min   bool        // something is subtracted
	Table [32]float32 // by code
}

// Layout returns the layout of a quantized type.
func (t Type) Layout() (Layout, bool) {
	l, ok := layouts[t]
	return l, ok
}

// Split is a block taken apart.
type Split struct {
	Codes [256]uint8 // indices of the table, or the bits of signed numbers
	D, M  uint16     // the bits of float16 numbers, of bfloat16 for D of MXFP4; M is 0 where nothing is subtracted
	S     [16]int8   // by group
	N     [16]uint8
}

var (
	kvalues = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113} // of IQ4
	e2m1    = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}                  // of MXFP4, doubled
)

var layouts = map[Type]Layout{
	Q4_0:   {Bits: 4, Group: 32, Table: from(-8)},
	Q4_1:   {Bits: 4, Group: 32, Min: true, Table: from(0)},
	Q5_0:   {Bits: 5, Group: 32, Table: from(-16)},
	Q5_1:   {Bits: 5, Group: 32, Min: true, Table: from(0)},
	Q8_0:   {Bits: 8, Group: 32},
	Q2_K:   {Bits: 4, Group: 16, Super: true, Min: true, Table: from(0)},
	Q3_K:   {Bits: 4, Group: 16, Super: true, Table: from(-4)},
	Q4_K:   {Bits: 4, Group: 32, Super: true, Min: true, Table: from(0)},
	Q5_K:   {Bits: 5, Group: 32, Super: true, Min: true, Table: from(0)},
	Q6_K:   {Bits: 8, Group: 16, Super: true},
	IQ4_NL: {Bits: 4, Group: 32, Table: of(kvalues)},
	IQ4_XS: {Bits: 4, Group: 32, Super: true, Table: of(kvalues)},
	MXFP4:  {Bits: 4, Group: 32, Table: of(e2m1)},
}

// from is the table of whole numbers from the first on.
func from(first int) (t [32]float32) {
	for i := range t {
		t[i] = float32(first + i)
	}
	return t
}

func of(values [16]float32) (t [32]float32) {
	copy(t[:], values[:])
	return t
}

// Split takes a block of a quantized type apart. It has as many elements as [Type.Block] says.
func (t Type) Split(s *Split, b []byte) {
	s.D, s.M = binary.LittleEndian.Uint16(b), 0
	s.S, s.N = [16]int8{1}, [16]uint8{1}
	codes := &s.Codes
	switch t {
	case Q4_0, IQ4_NL:
		nibbles(codes[:32], b[2:18])
	case Q4_1:
		s.M = binary.LittleEndian.Uint16(b[2:]) ^ 0x8000 // it is added
		nibbles(codes[:32], b[4:20])
	case Q5_0:
		nibbles(codes[:32], b[6:22])
		fifths(codes[:32], binary.LittleEndian.Uint32(b[2:]))
	case Q5_1:
		s.M = binary.LittleEndian.Uint16(b[2:]) ^ 0x8000
		nibbles(codes[:32], b[8:24])
		fifths(codes[:32], binary.LittleEndian.Uint32(b[4:]))
	case Q8_0:
		copy(codes[:32], b[2:34])
	case MXFP4:
		s.D = halfE8M0(b[0])
		nibbles(codes[:32], b[1:17])
	default:
		s.splitSuper(t, b)
	}
}

// splitSuper takes a block of 256 apart.
func (s *Split) splitSuper(t Type, b []byte) {
	codes := &s.Codes
	switch t {
	case Q2_K, Q3_K:
		s.splitTwoBits(t, b)
	case Q4_K:
		s.M = binary.LittleEndian.Uint16(b[2:])
		s.sixBits(b[4:16])
		for at := 0; at < 128; at += 8 { // parts of 64: low nibbles, then high nibbles
			q, to := word(b[16+at:]), codes[at/32*64+at%32:]
			putWord(to, q&each(15))
			putWord(to[32:], q>>4&each(15))
		}
	case Q5_K:
		s.M = binary.LittleEndian.Uint16(b[2:])
		s.sixBits(b[4:16])
		for at := 0; at < 128; at += 8 {
			part, l := at/32, at%32
			q, fifth, to := word(b[48+at:]), word(b[16+l:])>>(2*part), codes[64*part+l:] // bit n of byte l is that of 32n+l
			putWord(to, q&each(15)|fifth&each(1)<<4)
			putWord(to[32:], q>>4&each(15)|fifth>>1&each(1)<<4)
		}
	case Q6_K:
		s.D = binary.LittleEndian.Uint16(b[208:])
		for g := range 16 {
			s.S[g] = int8(b[192+g]) //nolint:gosec // the bits of a signed number
		}
		for at := 0; at < 256; at += 8 { // halves of four parts of 32: low nibbles of 64 bytes, then their high nibbles
			half, part, l := at/128, at/32%4, at%32
			low, upper := word(b[64*half+part%2*32+l:])>>(part/2*4), word(b[128+32*half+l:])>>(2*part)
			q := low&each(15) | upper&each(3)<<4
			putWord(codes[at:], (q+each(0x80-32))^each(0x80)) // q-32: the bytes do not borrow from one another
		}
	case IQ4_XS:
		high := binary.LittleEndian.Uint16(b[2:])
		for g := range 8 {
			s.S[g] = int8(b[4+g/2]>>(g%2*4)&15|uint8(high>>(2*g)&3)<<4) - 32
			nibbles(codes[32*g:32*g+32], b[8+16*g:][:16])
		}
	default:
		panic("ggml: " + t.String() + " has no blocks that are taken apart")
	}
}

// splitTwoBits takes a block whose codes have their low two bits in bytes of four apart.
func (s *Split) splitTwoBits(t Type, b []byte) {
	codes := &s.Codes
	if t == Q2_K {
		s.D, s.M = binary.LittleEndian.Uint16(b[80:]), binary.LittleEndian.Uint16(b[82:])
		for g := range 16 {
			s.S[g], s.N[g] = int8(b[g]&15), b[g]>>4
			at, shift := twoBits(g)
			for l := 0; l < 16; l += 8 {
				putWord(codes[16*g+l:], word(b[16+at+l:])>>shift&each(3))
			}
		}
		return
	}
	s.D = binary.LittleEndian.Uint16(b[108:])
	for g := range 16 {
		// A scale has four bits in the first 8 bytes, low nibbles first, and two in the last 4.
		scales := b[96:108]
		s.S[g] = int8(scales[g%8]>>(g/8*4)&15|scales[8+g%4]>>(g/4*2)&3<<4) - 32
		at, shift := twoBits(g)
		for l := 0; l < 16; l += 8 {
			third := word(b[g%2*16+l:]) >> (g / 2) // bit n of byte l is that of element 32n+l
			putWord(codes[16*g+l:], word(b[32+at+l:])>>shift&each(3)|third&each(1)<<2)
		}
	}
}

// nibbles are 32 codes: element j is in the low nibble of byte j, element 16+j in the high one.
func nibbles(codes []uint8, b []byte) {
	for j := 0; j < 16; j += 8 {
		q := word(b[j:])
		putWord(codes[j:], q&each(15))
		putWord(codes[j+16:], q>>4&each(15))
	}
}

func fifths(codes []uint8, bits uint32) {
	for j := range codes {
		codes[j] |= uint8(bits>>j&1) << 4
	}
}

// twoBits returns the position of the two low bits of a group of 16 elements: the first of 16 bytes, and the shift.
func twoBits(group int) (at, shift int) { return group/8*32 + group%2*16, group % 8 / 2 * 2 }

// sixBits reads the scales of Q4_K and Q5_K. The first four of each are the low six bits of the bytes 0 to 3 and 4 to
// 7. The others have four bits in the bytes 8 to 11, and two in the upper bits of the others.
func (s *Split) sixBits(b []byte) {
	for i := range 4 {
		s.S[i], s.N[i] = int8(b[i]&63), b[i+4]&63
		s.S[i+4], s.N[i+4] = int8(b[i+8]&15|b[i]>>6<<4), b[i+8]>>4|b[i+4]>>6<<4
	}
}

// halfE8M0 is the bfloat16 of 2^(e-128), half of the number that an exponent of the OCP Microscaling formats stands
// for.
func halfE8M0(e byte) uint16 {
	if e < 2 {
		return 0x20 << e
	}
	return uint16(e-1) << 7
}

// Eight bytes are taken apart at once. Bits that a shift takes to another byte are masked.

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func putWord(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// each is eight times a byte.
func each(b uint64) uint64 { return 0x0101010101010101 * b }
