#include "textflag.h"

// Constants of the reduction; see exp2.go.
DATA constants<>+0(SB)/8, $0xc08f400000000000  // -1000
DATA constants<>+8(SB)/8, $0x4050000000000000  // 64
DATA constants<>+16(SB)/8, $0x4338000000000000 // shift = 1.5 * 2^52
DATA constants<>+24(SB)/8, $0x3f90000000000000 // 1/64
DATA constants<>+32(SB)/8, $0x3fe62e42fefa39ef // ln 2
DATA constants<>+40(SB)/8, $0x3fa5555555555555 // 1/24
DATA constants<>+48(SB)/8, $0x3fc5555555555555 // 1/6
DATA constants<>+56(SB)/8, $0x3fe0000000000000 // 1/2
DATA constants<>+64(SB)/8, $0x3ff0000000000000 // 1
DATA constants<>+72(SB)/8, $63
GLOBL constants<>(SB), RODATA|NOPTR, $80

// func exp2AVX2(list *float64, n int, roots *[64]uint64)
//
// Four numbers at a time, n of them a multiple of four and not 0. No multiplication is fused with an addition, so that
// each has the bits of the portable code.
TEXT ·exp2AVX2(SB), NOSPLIT, $0-24
	MOVQ list+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ roots+16(FP), SI
	VBROADCASTSD constants<>+0(SB), Y15
	VBROADCASTSD constants<>+8(SB), Y14
	VBROADCASTSD constants<>+16(SB), Y13
	VBROADCASTSD constants<>+24(SB), Y12
	VBROADCASTSD constants<>+32(SB), Y11
	VBROADCASTSD constants<>+40(SB), Y10
	VBROADCASTSD constants<>+48(SB), Y9
	VBROADCASTSD constants<>+56(SB), Y8
	VBROADCASTSD constants<>+64(SB), Y7
	VPBROADCASTQ constants<>+72(SB), Y6
next:
	VMOVUPD (DI), Y0
	VMULPD Y14, Y0, Y1   // t = 64 x + shift
	VADDPD Y13, Y1, Y1
	VPSUBQ Y13, Y1, Y2   // k
	VSUBPD Y13, Y1, Y1   // k as a float
	VMULPD Y12, Y1, Y1
	VSUBPD Y1, Y0, Y1
	VMULPD Y11, Y1, Y1   // r
	VMULPD Y10, Y1, Y3   // y
	VADDPD Y9, Y3, Y3
	VMULPD Y1, Y3, Y3
	VADDPD Y8, Y3, Y3
	VMULPD Y1, Y3, Y3
	VADDPD Y7, Y3, Y3
	VMULPD Y1, Y3, Y3
	VADDPD Y7, Y3, Y3
	VPAND Y6, Y2, Y4     // j
	VPCMPEQD Y5, Y5, Y5
	VGATHERQPD Y5, (SI)(Y4*8), Y1
	VPANDN Y2, Y6, Y2    // k - j
	VPSLLQ $46, Y2, Y2   // (k / 64) 2^52
	VPADDQ Y2, Y1, Y1
	VMULPD Y1, Y3, Y3
	VCMPPD $13, Y15, Y0, Y4 // x >= -1000
	VANDPD Y4, Y3, Y3
	VMOVUPD Y3, (DI)
	ADDQ $32, DI
	SUBQ $4, CX
	JNZ next
	VZEROUPPER
	RET
