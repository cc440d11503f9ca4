package main

import "fmt"

// Registers: AX the argument; SI and DI the source and the destination; R8 and R9 a line of each; R13 the distance of
// what is prefetched; BX the number of lines left.
func packBegin(s *source, name string) {
	fmt.Fprintf(s, "\n// func %[1]s(p *packing)\nTEXT ·%[1]s(SB), NOSPLIT, $0-8\n", name)
	packArguments(s)
}

func packArguments(s *source) {
	s.op("MOVQ p+0(FP), AX")
	s.op("MOVQ packing_src(AX), SI")
	s.op("MOVQ packing_dst(AX), DI")
	s.op("MOVQ packing_dstLine(AX), R8")
	s.op("MOVQ packing_srcLine(AX), R9")
	s.op("MOVQ packing_ahead(AX), R13")
	s.op("MOVQ packing_k(AX), BX")
}

func packEnd(s *source) {
	s.op("VZEROUPPER")
	s.op("RET")
}

func copyAVX512(s *source) {
	packBegin(s, "copyAVX512")
	s.op("KMOVW packing_lanes(AX), K1")
	s.op("KMOVW packing_lanes+2(AX), K2")
	s.label("line")
	s.op("VMOVUPS.Z (SI), K1, Z0")
	s.op("VMOVUPS.Z 64(SI), K2, Z1")
	s.op("PREFETCHT1 (SI)(R13*1)")
	s.op("PREFETCHT1 64(SI)(R13*1)")
	s.op("VMOVUPS Z0, K1, (DI)")
	s.op("VMOVUPS Z1, K2, 64(DI)")
	s.op("ADDQ R9, SI")
	s.op("ADDQ R8, DI")
	s.op("DECQ BX")
	s.op("JNZ line")
	packEnd(s)
}

// transposeBlocksAVX512 transposes k blocks of 32 x 32 numbers, which are srcLine apart and follow one another in the
// destination.
func transposeBlocksAVX512(s *source) {
	const row = 128 // bytes
	packBegin(s, "transposeBlocksAVX512")
	s.label("block")
	s.op("MOVQ SI, CX")
	s.op("LEAQ (SI)(R9*1), R11")
	s.op("MOVQ $8, R10")
	s.label("quad")
	for half := range 2 {
		first := 8 * half
		for i := range 4 {
			s.op("PREFETCHT1 %d(R11)", 64*(4*half+i))
		}
		setAVX512.transpose(s, first, 16, func(number int) string { return fmt.Sprintf("%d(CX)", row*(16*half+number)) })
		for i := range 4 {
			s.op("VMOVUPS Z%d, %d(DI)", first+i, row*i+64*half)
		}
	}
	s.op("ADDQ $16, CX")
	s.op("ADDQ $%d, DI", 4*row)
	s.op("ADDQ $%d, R11", 4*row)
	s.op("DECQ R10")
	s.op("JNZ quad")
	s.op("ADDQ R9, SI")
	s.op("DECQ BX")
	s.op("JNZ block")
	packEnd(s)
}

// widen writes kernels that widen a multiple of 16 numbers of bfloat16 or float16.
func (m amd64) widen(s *source) {
	for _, name := range []string{"widen", "widenFloat16"} {
		m.widenAs(s, name, name == "widenFloat16")
	}
}

func (m amd64) widenAs(s *source, name string, float16 bool) {
	fmt.Fprintf(s, "\n// func %[1]s\nTEXT ·%[1]s(SB), NOSPLIT, $0-24\n", name+m.name)
	s.op("MOVQ dst+0(FP), DI")
	s.op("MOVQ src+8(FP), SI")
	s.op("MOVQ n+16(FP), BX")
	s.label("numbers")
	s.op("PREFETCHT0 1024(SI)")
	for v := range 64 / m.bytes {
		if float16 {
			s.op("VCVTPH2PS %d(SI), %s", v*m.bytes/2, m.reg(v))
		} else {
			s.op("VPMOVZXWD %d(SI), %s", v*m.bytes/2, m.reg(v))
			s.op("VPSLLD $16, %s, %s", m.reg(v), m.reg(v))
		}
		s.op("VMOVUPS %s, %d(DI)", m.reg(v), v*m.bytes)
	}
	s.op("ADDQ $32, SI")
	s.op("ADDQ $64, DI")
	s.op("SUBQ $16, BX")
	s.op("JNZ numbers")
	packEnd(s)
}
