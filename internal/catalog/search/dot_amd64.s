#include "textflag.h"

// func dot(a, b *direction) int32
TEXT ·dot(SB), NOSPLIT, $0-20
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ $8, CX
	PXOR X0, X0

next: // 16 steps of each, as words
	MOVOU     (SI), X1
	MOVOU     (DI), X2
	MOVO      X1, X3
	MOVO      X2, X4
	PUNPCKLBW X1, X1
	PUNPCKLBW X2, X2
	PUNPCKHBW X3, X3
	PUNPCKHBW X4, X4
	PSRAW     $8, X1
	PSRAW     $8, X2
	PSRAW     $8, X3
	PSRAW     $8, X4
	PMADDWL   X2, X1
	PMADDWL   X4, X3
	PADDL     X1, X0
	PADDL     X3, X0
	ADDQ      $16, SI
	ADDQ      $16, DI
	DECQ      CX
	JNZ       next

	// The sum of the four sums.
	PSHUFD $0x4E, X0, X1
	PADDL  X1, X0
	PSHUFD $0xB1, X0, X1
	PADDL  X1, X0
	MOVQ   X0, AX
	MOVL   AX, ret+16(FP)
	RET
