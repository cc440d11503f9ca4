#include "textflag.h"

// func copyLines(dst, src unsafe.Pointer, lines, bytes, step int)
TEXT ·copyLines(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ lines+16(FP), CX
	MOVQ bytes+24(FP), DX
	MOVQ step+32(FP), R8
line:
	XORQ AX, AX
part:
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU Y0, (DI)(AX*1)
	ADDQ $32, AX
	CMPQ AX, DX
	JLT part
	ADDQ DX, DI
	ADDQ R8, SI
	DECQ CX
	JNZ line
	VZEROUPPER
	RET
