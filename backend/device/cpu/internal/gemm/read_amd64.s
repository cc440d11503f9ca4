#include "textflag.h"

// func readAVX512(p unsafe.Pointer, n int)
TEXT ·readAVX512(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), BX
	SUBQ $512, BX
	JLT  tail

lines:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VMOVUPS 128(SI), Z2
	VMOVUPS 192(SI), Z3
	VMOVUPS 256(SI), Z4
	VMOVUPS 320(SI), Z5
	VMOVUPS 384(SI), Z6
	VMOVUPS 448(SI), Z7
	ADDQ $512, SI
	SUBQ $512, BX
	JGE  lines

tail:
	ADDQ $512, BX
	JZ   done

numbers:
	VMOVSS (SI), X0
	ADDQ $4, SI
	SUBQ $4, BX
	JNZ  numbers

done:
	VZEROUPPER
	RET

// func readAVX2(p unsafe.Pointer, n int)
TEXT ·readAVX2(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), BX
	SUBQ $256, BX
	JLT  tail

lines:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VMOVUPS 128(SI), Y4
	VMOVUPS 160(SI), Y5
	VMOVUPS 192(SI), Y6
	VMOVUPS 224(SI), Y7
	ADDQ $256, SI
	SUBQ $256, BX
	JGE  lines

tail:
	ADDQ $256, BX
	JZ   done

numbers:
	VMOVSS (SI), X0
	ADDQ $4, SI
	SUBQ $4, BX
	JNZ  numbers

done:
	VZEROUPPER
	RET
