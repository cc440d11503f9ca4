#include "textflag.h"

// func pause(n int)
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0
turn:
	YIELD
	SUBS $1, R0
	BNE turn
	RET
