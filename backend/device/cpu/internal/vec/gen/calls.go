package main

import (
	"fmt"
	"strings"
)

// names returns the parameters without their types, each cut to a part of the slice if part is not "".
func (k kernel) names(part string) string {
	var list []string
	if k.fold != nil {
		list = append(list, "lanes")
	}
	for _, s := range k.streams {
		list = append(list, s.name+part)
	}
	if k.prefetches() {
		list = append(list, "ahead")
	}
	return strings.Join(append(list, k.scalars...), ", ")
}

func fileHead(constraint string) string {
	return header + constraint + "package vec\n"
}

// declare writes the declaration of a function in assembly.
func declare(out *strings.Builder, name, rest string) {
	fmt.Fprintf(out, "\n//go:noescape\nfunc %s%s\n", name, rest)
}

// amd64Calls returns the declarations of the assembly and the functions that choose by level.
func amd64Calls(list []kernel) string {
	var out strings.Builder
	out.WriteString(fileHead(""))
	for _, k := range list {
		declare(&out, k.name+"AVX512", k.signature())
		if k.narrow() {
			declare(&out, k.name+"AVX2Body", k.signature())
			whole(&out, k, "AVX2", 8)
		} else {
			declare(&out, k.name+"AVX2", k.signature())
		}
		chooseKernel(&out, k, []string{"AVX512", "AVX2"})
	}
	for _, k := range rowKernels() {
		for _, level := range []string{"AVX512", "AVX2"} {
			declare(&out, k.rowsName()+level, "("+rowsParameters+")")
		}
	}
	out.WriteString(tables([]string{"AVX512", "AVX2"}))
	return out.String()
}

// whole writes a function that leaves what does not fill a vector to portable Go.
func whole(out *strings.Builder, k kernel, level string, width int) {
	give := ""
	fmt.Fprintf(out, "\nfunc %s%s%s {\n", k.name, level, k.signature())
	if k.fold != nil {
		out.WriteString(ownLanes(k))
		give = "return "
	}
	fmt.Fprintf(out, "\tn := len(%s) &^ %d\n", k.streams[0].name, width-1)
	fmt.Fprintf(out, "\t%s%sBody(%s)\n", k.name, level, k.names("[:n]"))
	fmt.Fprintf(out, "\t%s%sPortable(%s)\n}\n", give, k.name, k.names("[n:]"))
}

// chooseKernel writes the function that calls a kernel at a level, if there is no table for that.
func chooseKernel(out *strings.Builder, k kernel, levels []string) {
	if k.tabled {
		return
	}
	head, give := strings.Replace(k.signature(), "(", "(l Level, ", 1), ""
	if k.fold != nil {
		give = "return "
	}
	if len(levels) == 0 {
		fmt.Fprintf(out, "\nfunc %s%s {\n\t%s%sPortable(%s)\n}\n", k.name, strings.Replace(head, "l ", "_ ", 1), give,
			k.name, k.names(""))
		return
	}
	fmt.Fprintf(out, "\nfunc %s%s {\n\tswitch l {\n", k.name, head)
	for _, level := range levels {
		fmt.Fprintf(out, "\tcase %s:\n\t\t%s%s%s(%s)\n", level, give, k.name, level, k.names(""))
	}
	fmt.Fprintf(out, "\tdefault:\n\t\t%s%sPortable(%s)\n\t}\n}\n", give, k.name, k.names(""))
}

// arm64Calls is amd64Calls for NEON. Kernels with narrow elements are portable there.
func arm64Calls(list []kernel) string {
	var out strings.Builder
	out.WriteString(fileHead(""))
	for _, k := range list {
		if k.narrow() {
			chooseKernel(&out, k, nil)
			continue
		}
		width := 4
		if k.fold != nil {
			width = 64
		}
		declare(&out, k.name+"NEONBody", "("+k.parameters()+")")
		whole(&out, k, "NEON", width)
		chooseKernel(&out, k, []string{"NEON"})
	}
	out.WriteString(tables([]string{"NEON"}))
	return out.String()
}

// otherCalls is amd64Calls for processors without assembly.
func otherCalls(list []kernel) string {
	var out strings.Builder
	out.WriteString(fileHead("//go:build !amd64 && !arm64\n\n"))
	for _, k := range list {
		chooseKernel(&out, k, nil)
	}
	out.WriteString(tables(nil))
	return out.String()
}

// tables writes, for each shape of the element-wise functions, the table by operation and level, and those of the
// functions for rows, by level.
func tables(levels []string) string {
	var out strings.Builder
	for _, t := range []struct {
		name, shape string
		list        []kernel
	}{
		{"unaryTable", "dst []float32, x []float32", unaryKernels()},
		{"binaryTable", "dst []float32, a []float32, b []float32", binaryKernels()},
		{"binaryScalarTable", "dst []float32, a []float32, b float32", binaryKernels()},
		{"scalarBinaryTable", "dst []float32, b []float32, a float32", binaryKernels()},
		{"compareTable", "dst []bool, a []float32, b []float32", compareKernels()},
		{"compareScalarTable", "dst []bool, a []float32, b float32", compareKernels()},
	} {
		fmt.Fprintf(&out, "\nvar %s = [...][numLevels]func(%s){\n", t.name, t.shape)
		for _, k := range t.list {
			if k.parameters() == t.shape {
				fmt.Fprintf(&out, "\t%s: {%s},\n", opName(k.name), strings.Join(entries(k, levels), ", "))
			}
		}
		out.WriteString("}\n")
	}
	for _, k := range rowKernels() {
		fmt.Fprintf(&out, "\nvar %sTable = [numLevels]func(%s){", k.rowsName(), rowsParameters)
		for _, l := range levels {
			if l != "NEON" {
				fmt.Fprintf(&out, "%s: %s%s, ", l, k.rowsName(), l)
			}
		}
		out.WriteString("}\n")
	}
	return out.String()
}

// entries returns the functions of a kernel, by level. Those for small arguments are completed by hand-written Go.
func entries(k kernel, levels []string) (list []string) {
	for _, l := range append([]string{"Portable"}, levels...) {
		name, small := strings.CutSuffix(k.name, "Small")
		switch {
		case small:
			list = append(list, fmt.Sprintf("%s: %sAt(%s)", l, name, l))
		case l != "NEON" || !k.narrow():
			list = append(list, fmt.Sprintf("%s: %s%s", l, k.name, l))
		default:
			list = append(list, fmt.Sprintf("%s: %sPortable", l, k.name))
		}
	}
	return list
}

// opName returns the exported name of the operation of a kernel.
func opName(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Scalar"), "Small")
	return "Op" + upper(strings.TrimPrefix(name, "scalar"))
}
