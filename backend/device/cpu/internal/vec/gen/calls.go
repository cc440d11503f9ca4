package main

import (
	"fmt"
	"slices"
	"strings"
)

// wrap joins a list with commas, in lines of at most 120 columns: the first one goes on from a line, the others are
// indented by tabs.
func wrap(line string, tabs int, list []string) string {
	var out strings.Builder
	column := len(line)
	out.WriteString(line)
	for i, s := range list {
		if i < len(list)-1 {
			s += ","
		}
		switch {
		case column+1+len(s) > 120:
			out.WriteString("\n" + strings.Repeat("\t", tabs))
			column = tabs
		case i > 0:
			out.WriteString(" ")
			column++
		}
		out.WriteString(s)
		column += len(s)
	}
	return out.String()
}

// shape is how a kernel is called, without the types of elements.
type shape int

const (
	other  shape = iota
	unary        // dst, x
	binary       // dst, a, b
	scalar       // dst, a and a number
	call         // a *FusedCall
)

func (k kernel) shape() shape {
	switch {
	case k.fused:
		return call
	case k.fold == nil && len(k.streams) == 2 && len(k.scalars) == 0:
		return unary
	case k.fold == nil && len(k.streams) == 3 && len(k.scalars) == 0:
		return binary
	case k.fold == nil && len(k.streams) == 2 && len(k.scalars) == 1:
		return scalar
	}
	return other
}

// level is what the kernels of an instruction set in assembly leave to Go.
type level struct {
	name string
	// width is the number of elements of which a kernel takes a multiple, 1 for any number, and 0 if there is none.
	width func(k kernel) int
	more  string // other fields of its kernels
}

var levelAVX512 = level{"AVX512", func(kernel) int { return 1 }, "stripRows: 16, transposeStrip: transposeStripAVX512,"}

var levelAVX2 = level{"AVX2", func(k kernel) int {
	if k.narrow() {
		return 8
	}
	return 1
}, "stripRows: 8, transposeStrip: transposeStripAVX2,"}

var levelNEON = level{"NEON", func(k kernel) int {
	switch {
	case k.narrow():
		return 0
	case k.fold != nil:
		return 64
	}
	return 4
}, ""}

// callsFile returns the declarations of the assembly and the kernels of these levels.
func callsFile(list []kernel, levels ...level) string {
	var out strings.Builder
	out.WriteString(header + "package vec\n\n")
	for _, l := range levels {
		for _, k := range list {
			if l.width(k) == 0 {
				continue
			}
			if k.fold != nil && l.width(k) > 1 {
				out.WriteString("\n//go:noescape\n") // of lanes
			}
			name, signature := k.assembly(l)
			fmt.Fprintf(&out, "func %s%s\n", name, signature)
		}
		if l.more != "" {
			for _, k := range rowKernels() {
				fmt.Fprintf(&out, "func %s%s(%s)\n", k.rowsName(), l.name, rowsParameters)
			}
			fmt.Fprintf(&out, "func transposeStrip%s(%s)\n", l.name, stripParameters)
		}
		for _, k := range list {
			if k.shape() == other && l.width(k) > 1 {
				whole(&out, k, l)
			}
		}
		out.WriteString(l.table() + "\n")
	}
	return out.String()
}

// assembly is the name and the signature of a kernel of a level in assembly; one that is completed by a function of its
// own is its body, without a result.
func (k kernel) assembly(l level) (name, signature string) {
	if k.shape() == other && l.width(k) > 1 {
		return k.name + l.name + "Body", "(" + k.parameters() + ")"
	}
	return k.name + l.name, k.signature()
}

// whole writes a function that leaves what does not fill a vector to portable Go.
func whole(out *strings.Builder, k kernel, l level) {
	fmt.Fprintf(out, "\nfunc %s%s%s {\n", k.name, l.name, k.signature())
	give := ""
	if k.fold != nil {
		out.WriteString(ownLanes(k))
		give = "return "
	}
	fmt.Fprintf(out, "\tn := len(%s) &^ %d\n", k.streams[0].name, l.width(k)-1)
	fmt.Fprintf(out, "\t%s%sBody(%s)\n", k.name, l.name, k.arguments("[:n]"))
	fmt.Fprintf(out, "\t%s%sPortable(%s)\n}\n", give, k.name, k.arguments("[n:]"))
}

// arguments returns the parameters without their types, each cut to a part of the slice.
func (k kernel) arguments(part string) string {
	var list []string
	if k.fold != nil {
		list = append(list, "lanes")
	}
	for _, s := range k.streams {
		list = append(list, s.name+part)
	}
	return strings.Join(append(list, k.scalars...), ", ")
}

// entry is the Go function of a kernel at a level.
func (k kernel) entry(l level) string {
	helper := map[shape]string{unary: "wholeUnary", binary: "wholeBinary", scalar: "wholeScalar", call: "wholeFused"}
	switch width := l.width(k); {
	case width == 0:
		return k.name + "Portable"
	case width > 1 && k.shape() != other:
		return fmt.Sprintf("%s(%d, %s%s, %[3]sPortable)", helper[k.shape()], width, k.name, l.name)
	}
	return k.name + l.name
}

// table returns the variable with the kernels of a level.
func (l level) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\nvar kernels%s = kernels{\n", l.name)
	for _, field := range []struct {
		name, parameters string
		list             []kernel
	}{
		{"unary", "dst, x []float32", unaryKernels()},
		{"binary", "dst, a, b []float32", binaryKernels()},
		{"binaryScalar", "dst, a []float32, b float32", binaryKernels()},
		{"scalarBinary", "dst, b []float32, a float32", binaryKernels()},
		{"compare", "dst []bool, a, b []float32", compareKernels()},
		{"compareScalar", "dst []bool, a []float32, b float32", compareKernels()},
		{"fused", "call *FusedCall", fusedKernels()},
	} {
		var entries []string
		for _, k := range field.list {
			if k.parameters() != field.parameters {
				continue
			}
			if k.fused {
				entries = append(entries, k.entry(l))
			} else {
				entries = append(entries, opName(k.name)+": "+k.entry(l))
			}
		}
		fmt.Fprintf(&out, "\t%s: []func(%s){\n%s,\n\t},\n", field.name, field.parameters, wrap("\t\t", 2, entries))
	}
	var others []string
	for _, k := range slices.Concat(mixKernels(), foldKernels(), convertKernels()) {
		others = append(others, k.name+": "+k.entry(l))
	}
	if l.more != "" {
		for _, k := range rowKernels() {
			others = append(others, fmt.Sprintf("%s: %[1]s%s", k.rowsName(), l.name))
		}
	}
	fmt.Fprintf(&out, "%s,\n%s\n}\n", wrap("\t", 1, others), l.more)
	return out.String()
}

// opName returns the exported name of the operation of a kernel.
func opName(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Scalar"), "Small")
	return "Op" + upper(strings.TrimPrefix(name, "scalar"))
}
