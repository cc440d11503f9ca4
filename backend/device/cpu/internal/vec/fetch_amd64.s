#include "textflag.h"

// func fetchAhead(p unsafe.Pointer, lines int)
TEXT ·fetchAhead(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), SI
	MOVQ lines+8(FP), CX
line:
	PREFETCHT1 (SI)
	ADDQ $64, SI
	DECQ CX
	JNZ line
	RET
