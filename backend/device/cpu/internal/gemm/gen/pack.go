package main

import (
	"fmt"
	"strings"
)

// packAVX512 writes the kernels that move panels.
func packAVX512(s *source) {
	copyAVX512(s)
	transposeAVX512(s)
	transposeBlocksAVX512(s)
	widenAVX512(s)
}

// Registers: AX the argument; SI and DI the source and the destination; R8 and R9 a line of each; R13 the distance of
// what is fetched ahead; BX the number of lines left.
func packBegin(s *source, name string) {
	s.begin(name + "(SB)")
	s.op("MOVQ p+0(FP), AX")
	s.op("MOVQ packing_src(AX), SI")
	s.op("MOVQ packing_dst(AX), DI")
	s.op("MOVQ packing_dstLine(AX), R8")
	s.op("MOVQ packing_srcLine(AX), R9")
	s.op("MOVQ packing_ahead(AX), R13")
	s.op("MOVQ packing_k(AX), BX")
	s.op("KMOVW packing_lanes(AX), K1")
	s.op("KMOVW packing_lanes+2(AX), K2")
}

func packEnd(s *source) {
	s.op("VZEROUPPER")
	s.op("RET")
}

func copyAVX512(s *source) {
	packBegin(s, "copyAVX512")
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

// transposeAVX512 takes 16 numbers of 4 lines in a round; k is a multiple of 4.
func transposeAVX512(s *source) {
	packBegin(s, "transposeAVX512")
	s.op("LEAQ (R8)(R8*2), R10")
	s.op("LEAQ packing_offset(AX), R14")
	s.op("SHRQ $2, BX")
	s.label("quad")
	fetch(s, "SI", "R14", "R11", "CX", "T1", "R13")
	transposeQuad(s, "SI", "R14", "CX", 0)
	storeQuad(s)
	s.op("DECQ BX")
	s.op("JNZ quad")
	packEnd(s)
}

// transposeBlocksAVX512 transposes k blocks of 32 x 32 numbers, which are srcLine apart and follow one another in the destination.
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
		transpose(s, first, func(number int) string { return fmt.Sprintf("%d(CX)", row*(16*half+number)) })
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

// fetch fetches what is ahead of 4 numbers, others in each of 4 rounds. ahead is a number of bytes, or a register with it.
func fetch(s *source, src, table, four, offset, level, ahead string) {
	s.op("MOVQ BX, %s", four)
	s.op("ANDQ $3, %s", four)
	s.op("SHLQ $5, %s", four)
	s.op("ADDQ %s, %s", table, four)
	for i := range 4 {
		s.op("MOVQ %d(%s), %s", 8*i, four, offset)
		if strings.HasPrefix(ahead, "R") {
			s.op("ADDQ %s, %s", ahead, offset)
			s.op("PREFETCH%s (%s)(%s*1)", level, src, offset)
		} else {
			s.op("PREFETCH%s %s(%s)(%s*1)", level, ahead, src, offset)
		}
	}
}

// transposeQuad transposes 4 lines of 16 numbers, as transpose does. The offset of a number is loaded from a table.
func transposeQuad(s *source, src, table, offset string, first int) {
	transpose(s, first, func(number int) string {
		s.op("MOVQ %d(%s), %s", 8*number, table, offset)
		return fmt.Sprintf("(%s)(%s*1)", src, offset)
	})
}

// transpose transposes 4 lines of 16 numbers, in the registers from first on, into the first 4 of them: first 128-bit lane l of
// register i is 4 lines of number 4l+i, and then each lane is transposed.
func transpose(s *source, first int, at func(number int) string) {
	for lane := range 4 {
		for i := range 4 {
			from := at(4*lane + i)
			if lane == 0 {
				s.op("VMOVUPS %s, X%d", from, first+i)
			} else {
				s.op("VINSERTF32X4 $%d, %s, Z%d, Z%d", lane, from, first+i, first+i)
			}
		}
	}
	shuffle := func(name string, y, x, z int) {
		s.op("VUNPCK%s Z%d, Z%d, Z%d", name, first+y, first+x, first+z)
	}
	shuffle("LPS", 1, 0, 4)
	shuffle("HPS", 1, 0, 5)
	shuffle("LPS", 3, 2, 6)
	shuffle("HPS", 3, 2, 7)
	shuffle("LPD", 6, 4, 0)
	shuffle("HPD", 6, 4, 1)
	shuffle("LPD", 7, 5, 2)
	shuffle("HPD", 7, 5, 3)
}

// storeQuad stores the 4 lines.
func storeQuad(s *source) {
	s.op("VMOVUPS Z0, K1, (DI)")
	s.op("VMOVUPS Z1, K1, (DI)(R8*1)")
	s.op("VMOVUPS Z2, K1, (DI)(R8*2)")
	s.op("VMOVUPS Z3, K1, (DI)(R10*1)")
	s.op("ADDQ $16, SI")
	s.op("LEAQ (DI)(R8*4), DI")
}

// widenAVX512 widens a multiple of 16 numbers.
func widenAVX512(s *source) {
	s.WriteString("\n// func widenAVX512\nTEXT ·widenAVX512(SB), NOSPLIT, $0-24\n")
	s.op("MOVQ dst+0(FP), DI")
	s.op("MOVQ src+8(FP), SI")
	s.op("MOVQ n+16(FP), BX")
	s.label("numbers")
	s.op("VPMOVZXWD (SI), Z0")
	s.op("VPSLLD $16, Z0, Z0")
	s.op("VMOVUPS Z0, (DI)")
	s.op("ADDQ $32, SI")
	s.op("ADDQ $64, DI")
	s.op("SUBQ $16, BX")
	s.op("JNZ numbers")
	packEnd(s)
}
