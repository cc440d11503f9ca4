package jinja

import (
	"cmp"
	"math/big"
	"reflect"
	"unicode/utf8"
)

// A value of a template is one of these:
//
//	nil             None
//	bool, float64   themselves
//	int, *big.Int   int; big only if it does not fit an int
//	string, markup  str, and str that is known to be HTML
//	*list           list or tuple
//	*Dict           dict
//
// or has one of the types below, which are internal to the interpreter.
type (
	markup string
	list   struct {
		items []any
		tuple bool
		group bool // a tuple made by groupby: its items are also called grouper and list
		own   bool // it was written as a list in the template, and nothing outside the rendering has it
	}

	// undefined is the value of a name or attribute that does not exist.
	undefined struct {
		hint   string // the whole message, if set
		name   any
		object any
		of     bool // it is an attribute or item of object
		kind   string
	}
	namespace struct{ attrs *Dict }
	view      struct { // of a dict
		dict *Dict
		what string // "keys", "values" or "items"
	}
	span struct{ start, stop, step int } // range
	// generator is an iterator that can be used once.
	generator struct {
		next  iterator
		depth int // the length of the chain of generators that it reads from
		name  string
	}
	// builtin is a function or method.
	builtin struct {
		name  string
		call  func(r *run, a arg) any
		attrs map[string]any
	}
	cycler struct {
		items []any
		pos   int
	}
	joiner struct {
		sep  string
		used bool
	}
	templateSelf struct{} // "self": its attributes are the blocks
)

// iterator returns the next item, and false at the end.
type iterator func() (any, bool)

func newList(items ...any) *list { return &list{items: items} }

func newTuple(items ...any) *list { return &list{items: items, tuple: true} }

func newBuiltin(name string, call func(r *run, a arg) any) *builtin {
	return &builtin{name: name, call: call}
}

// method returns a function without arguments.
func method(name string, call func(r *run) any) *builtin {
	return newBuiltin(name, func(r *run, a arg) any {
		a.bind(name)
		return call(r)
	})
}

// fail raises the error for using an undefined value.
func (u *undefined) fail() { raise(cmp.Or(u.kind, undefinedError), "%s", u.message()) }

// defined raises the error for using a value if it is undefined.
func defined(v any) {
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
}

// reject raises a TypeError about a value, or the error for using it if it is undefined.
func reject(v any, format string, args ...any) {
	defined(v)
	raise(typeError, format, args...)
}

func (u *undefined) message() string {
	switch name, isText := u.name.(string); {
	case u.hint != "":
		return u.hint
	case !u.of:
		return reprString(name) + " is undefined"
	case !isText:
		return objectName(u.object) + " has no such element"
	default:
		return "'" + objectName(u.object) + "' has no attribute " + reprString(name)
	}
}

// objectName describes an object for messages.
func objectName(v any) string {
	if v == nil {
		return "None"
	}
	return typeName(v) + " object"
}

// typeNames are the names of types in Python.
var typeNames = map[reflect.Type]string{
	reflect.TypeFor[bool](): "bool", reflect.TypeFor[int](): "int", reflect.TypeFor[*big.Int](): "int",
	reflect.TypeFor[float64](): "float", reflect.TypeFor[string](): "str", reflect.TypeFor[markup](): "Markup",
	reflect.TypeFor[*Dict](): "dict", reflect.TypeFor[*undefined](): "Undefined", reflect.TypeFor[span](): "range",
	reflect.TypeFor[*namespace](): "TemplateNamespace", reflect.TypeFor[*builtin](): "builtin_function_or_method",
	reflect.TypeFor[*macro](): "Macro", reflect.TypeFor[*loop](): "LoopContext", reflect.TypeFor[slice](): "slice",
	reflect.TypeFor[*cycler](): "Cycler", reflect.TypeFor[*joiner](): "Joiner", nil: "NoneType",
}

// typeName is the name of the type in Python.
func typeName(v any) string {
	switch v := v.(type) {
	case *list:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *view:
		return "dict_" + v.what
	case *generator:
		return v.name
	}
	return cmp.Or(typeNames[reflect.TypeOf(v)], "object")
}

// truth is bool(v).
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	}
	if n, ok := length(v); ok {
		return n > 0
	}
	return true
}

// length is len(v); ok is false if v has no length.
func length(v any) (n int, ok bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case markup:
		return utf8.RuneCountInString(string(v)), true
	case *list:
		return len(v.items), true
	case *Dict:
		return v.Len(), true
	case *undefined:
		return 0, true
	case *view:
		return v.dict.Len(), true
	case span:
		return v.len(), true
	case *loop:
		return v.length(), true
	}
	return 0, false
}

// text returns the text of a str.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// sequence returns the items of a list or a tuple.
func sequence(v any) ([]any, bool) {
	if l, ok := v.(*list); ok {
		return l.items, true
	}
	return nil, false
}

func (s span) len() int {
	switch {
	case s.step > 0 && s.start < s.stop:
		return (s.stop-s.start-1)/s.step + 1
	case s.step < 0 && s.start > s.stop:
		return (s.start-s.stop-1)/-s.step + 1
	}
	return 0
}

// checkAttribute rejects the attributes that transformers does not let templates store in a namespace.
func checkAttribute(name any) {
	if s, ok := name.(string); ok && len(s) > 0 && s[0] == '_' {
		raise(securityError, "Chat templates cannot store underscore-prefixed attributes on a namespace, but got %s.",
			reprString(s))
	}
}
