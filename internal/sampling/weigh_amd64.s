#include "textflag.h"

// Constants of the reduction; see sampling.go.
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

// func weighAVX2(weights *float64, x *float32, n int, best, scale float64, roots *[64]uint64, sums *[4]float64)
//
// Four numbers at a time, n of them a multiple of four and not 0. No multiplication is fused with an addition, so that
// each has the bits of the portable code.
TEXT ·weighAVX2(SB), NOSPLIT, $0-56
	MOVQ weights+0(FP), DI
	MOVQ x+8(FP), DX
	MOVQ n+16(FP), CX
	VBROADCASTSD best+24(FP), Y15
	VBROADCASTSD scale+32(FP), Y14
	MOVQ roots+40(FP), SI
	MOVQ sums+48(FP), BX
	VBROADCASTSD constants<>+16(SB), Y13
	VBROADCASTSD constants<>+24(SB), Y12
	VBROADCASTSD constants<>+32(SB), Y11
	VBROADCASTSD constants<>+40(SB), Y10
	VBROADCASTSD constants<>+48(SB), Y9
	VBROADCASTSD constants<>+64(SB), Y7
	VPBROADCASTQ constants<>+72(SB), Y6
	VXORPD Y8, Y8, Y8    // sums
next:
	VCVTPS2PD (DX), Y0
	VSUBPD Y15, Y0, Y0
	VMULPD Y14, Y0, Y0   // x
	VBROADCASTSD constants<>+8(SB), Y1
	VMULPD Y1, Y0, Y1    // t = 64 x + shift
	VADDPD Y13, Y1, Y1
	VPSUBQ Y13, Y1, Y2   // k
	VSUBPD Y13, Y1, Y1   // k as a float
	VMULPD Y12, Y1, Y1
	VSUBPD Y1, Y0, Y1
	VMULPD Y11, Y1, Y1   // r
	VMULPD Y10, Y1, Y3   // y
	VADDPD Y9, Y3, Y3
	VMULPD Y1, Y3, Y3
	VBROADCASTSD constants<>+56(SB), Y4
	VADDPD Y4, Y3, Y3
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
	VBROADCASTSD constants<>+0(SB), Y4
	VCMPPD $13, Y4, Y0, Y4 // x >= -1000
	VANDPD Y4, Y3, Y3
	VMOVUPD Y3, (DI)
	VADDPD Y3, Y8, Y8
	ADDQ $16, DX
	ADDQ $32, DI
	SUBQ $4, CX
	JNZ next
	VMOVUPD Y8, (BX)
	VZEROUPPER
	RET

// func maxAVX2(x *float32, n int) float32
//
// n is a multiple of 32 and not 0.
TEXT ·maxAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
part:
	VMAXPS (SI), Y0, Y0
	VMAXPS 32(SI), Y1, Y1
	VMAXPS 64(SI), Y2, Y2
	VMAXPS 96(SI), Y3, Y3
	ADDQ $128, SI
	SUBQ $32, CX
	JNZ part
	VMAXPS Y1, Y0, Y0
	VMAXPS Y3, Y2, Y2
	VMAXPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0x4e, X0, X1
	VMAXPS X1, X0, X0
	VPERMILPS $0xb1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET
