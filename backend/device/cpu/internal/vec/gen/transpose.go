package main

import (
	"fmt"
	"strings"
)

const stripParameters = "dst, src []float32, dstStride, srcStride, columns int"

// transposes writes the function that transposes a strip: as many rows as a register has lanes, and a multiple of it of
// columns. The rows come in by quarters of four elements, so that each register has elements of one column group; what
// is left is to transpose four by four within the quarters.
func transposes(s isa, out *strings.Builder) {
	t := &x86{isa: s, out: out}
	fmt.Fprintf(out, "\n// func transposeStrip%s(%s)\n", s.name, stripParameters)
	fmt.Fprintf(out, "TEXT ·transposeStrip%s(SB), NOSPLIT, $0-72\n", s.name)
	for _, l := range []string{
		"MOVQ dst_base+0(FP), DI", "MOVQ src_base+24(FP), SI", "MOVQ dstStride+48(FP), R8", "MOVQ srcStride+56(FP), R9",
		"MOVQ columns+64(FP), CX", "SHLQ $2, R8", "SHLQ $2, R9", "LEAQ (R8)(R8*2), R10", "LEAQ (R9)(R9*2), R11",
	} {
		t.line("%s", l)
	}
	quarters := s.width / 4
	rows := []string{"SI", "AX", "BX", "DX"}[:quarters]
	for q := range quarters - 1 {
		t.line("LEAQ (%s)(R9*4), %s", rows[q], rows[q+1])
	}
	out.WriteString("strip:\n")
	for q := range quarters {
		for i := range 4 {
			// Load columns 4q to 4q+3 of rows i, 4+i, 8+i, ... into register 4q+i.
			offset := []string{"", "(R9*1)", "(R9*2)", "(R11*1)"}[i]
			r := 4*q + i
			t.line("VMOVUPS %d(%s)%s, X%d", 16*q, rows[0], offset, r)
			for k, base := range rows[1:] {
				name := map[bool]string{true: "VINSERTF32X4", false: "VINSERTF128"}[t.masks]
				t.line("%s $%d, %d(%s)%s, %s, %s", name, k+1, 16*q, base, offset, t.reg(r), t.reg(r))
			}
		}
	}
	for q := range quarters {
		// Transpose within the quarters of the registers from r to r+3. Those from spare on are free.
		r := 4 * q
		for i, name := range []string{"VUNPCKLPS", "VUNPCKHPS"} {
			t.line("%s %s, %s, %s", name, t.reg(r+1), t.reg(r), t.reg(s.width+i))
			t.line("%s %s, %s, %s", name, t.reg(r+3), t.reg(r+2), t.reg(s.width+2+i))
		}
		for i := range 2 {
			t.line("VUNPCKLPD %s, %s, %s", t.reg(s.width+2+i), t.reg(s.width+i), t.reg(r+2*i))
			t.line("VUNPCKHPD %s, %s, %s", t.reg(s.width+2+i), t.reg(s.width+i), t.reg(r+2*i+1))
		}
		t.line("VMOVUPS %s, (DI)", t.reg(4*q))
		t.line("VMOVUPS %s, (DI)(R8*1)", t.reg(4*q+1))
		t.line("VMOVUPS %s, (DI)(R8*2)", t.reg(4*q+2))
		t.line("VMOVUPS %s, (DI)(R10*1)", t.reg(4*q+3))
		t.line("LEAQ (DI)(R8*4), DI")
	}
	for _, r := range rows {
		t.line("ADDQ $%d, %s", 4*s.width, r)
	}
	t.line("SUBQ $%d, CX", s.width)
	t.line("JGT strip")
	t.line("VZEROUPPER")
	t.line("RET")
}
