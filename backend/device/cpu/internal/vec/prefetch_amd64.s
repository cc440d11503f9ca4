#include "textflag.h"

// func prefetchLines(p unsafe.Pointer, lines int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), SI
	MOVQ lines+8(FP), CX
line:
	PREFETCHT1 (SI)
	ADDQ $64, SI
	DECQ CX
	JNZ line
	RET
