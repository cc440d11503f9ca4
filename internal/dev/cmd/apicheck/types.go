package main

import (
	"fmt"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// typeLines describes a type, its fields and its methods.
func typeLines(o *types.TypeName, qualify types.Qualifier) []string {
	if o.IsAlias() {
		return []string{fmt.Sprintf("type %s = %s", o.Name(), types.TypeString(types.Unalias(o.Type()), qualify))}
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return []string{fmt.Sprintf("type %s %s", o.Name(), types.TypeString(o.Type(), qualify))}
	}
	head := "type " + o.Name() + typeParams(named.TypeParams(), qualify)
	var lines []string
	switch under := named.Underlying().(type) {
	case *types.Struct:
		lines = append(lines, head+" struct")
		for _, field := range fieldLines(under, qualify) {
			lines = append(lines, head+" struct, "+field)
		}
	case *types.Interface:
		return append(lines, interfaceLines(head, under, qualify)...)
	default:
		lines = append(lines, head+" "+types.TypeString(under, qualify))
	}
	return append(lines, methodLines(named, qualify)...)
}

// fieldLines describes the exported fields of a struct, with the names that JSON gives them.
func fieldLines(s *types.Struct, qualify types.Qualifier) (lines []string) {
	for i := range s.NumFields() {
		field := s.Field(i)
		if !field.Exported() {
			continue
		}
		name := field.Name()
		if field.Embedded() {
			name = "embedded"
		}
		line := name + " " + types.TypeString(field.Type(), qualify)
		if tag := reflect.StructTag(s.Tag(i)).Get("json"); tag != "" {
			line += fmt.Sprintf(" json:%q", tag)
		}
		lines = append(lines, line)
	}
	return lines
}

// interfaceLines describes an interface. Others may implement one without unexported methods, so that a new method
// breaks them: its methods are one line.
func interfaceLines(head string, i *types.Interface, qualify types.Qualifier) []string {
	var methods []string
	sealed := false
	for m := range i.Methods() {
		if m.Exported() {
			methods = append(methods, m.Name()+signature(m.Signature(), qualify))
		} else {
			sealed = true
		}
	}
	slices.Sort(methods)
	if !i.IsMethodSet() { // a constraint
		return []string{head + " " + types.TypeString(i, qualify)}
	}
	if !sealed {
		return []string{head + " interface { " + strings.Join(methods, "; ") + " }"}
	}
	lines := []string{head + " interface, sealed"}
	for _, m := range methods {
		lines = append(lines, head+" interface, "+m)
	}
	return lines
}

// methodLines describes the exported methods of a pointer to a type, those of embedded fields included.
func methodLines(named *types.Named, qualify types.Qualifier) (lines []string) {
	values := types.NewMethodSet(named)
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		m := selection.Obj().(*types.Func)
		if !m.Exported() {
			continue
		}
		receiver := "*" + named.Obj().Name()
		if values.Lookup(m.Pkg(), m.Name()) != nil {
			receiver = named.Obj().Name()
		}
		lines = append(lines, fmt.Sprintf("method (%s) %s%s", receiver, m.Name(), signature(m.Signature(), qualify)))
	}
	return lines
}
