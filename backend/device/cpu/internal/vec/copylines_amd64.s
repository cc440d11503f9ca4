#include "go_asm.h"
#include "textflag.h"

// func copyLines(dst, src unsafe.Pointer, planes int, p *Plane)
TEXT ·copyLines(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), R9
	MOVQ planes+16(FP), BX
	MOVQ p+24(FP), AX
	MOVQ Plane_Next(AX), R10
	MOVQ Plane_Lines(AX), R11
	MOVQ Plane_Step(AX), R8
	MOVQ Plane_Bytes(AX), DX
plane:
	MOVQ R9, SI
	MOVQ R11, CX
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
	ADDQ R10, R9
	DECQ BX
	JNZ plane
	VZEROUPPER
	RET
