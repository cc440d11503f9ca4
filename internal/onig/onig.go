// Package onig matches regular expressions as Oniguruma does, the engine of Hugging Face's tokenizers: the same syntax,
// the same choice between matches, and the same Unicode version, independently of Go's.
//
// It supports classes with nesting and intersection, properties, the POSIX classes, greedy, lazy and possessive
// repetition, groups, lookaround, atomic groups, anchors and the options i, m and x. Unsupported syntax (back
// references, conditionals, subexpression calls) is an error that names it.
//
// [CompileFancy] has the syntax of another engine, that of tiktoken.
//
// Matching is by backtracking. A search that takes many steps begins to memoize the states that failed, and the ends of
// runs. Then nested repetitions take linear time; only lookaround within a repetition may take quadratic time.
//
// The package is frozen: a new feature needs a released tokenizer that uses it.
package onig

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Regexp is a compiled pattern. It is safe for concurrent use.
type Regexp struct {
	code    []inst
	first   [256]bool // the bytes that a match can begin with
	empty   bool      // it can match the empty text
	guarded bool      // it has a loop whose body can match the empty text
}

// Compile compiles a pattern in the syntax of Oniguruma.
func Compile(pattern string) (*Regexp, error) { return assemble(pattern, false) }

// syntaxError is the panic value for a pattern that is not valid.
type syntaxError string

func fail(format string, args ...any) { panic(syntaxError(fmt.Sprintf(format, args...))) }

func assemble(pattern string, fancy bool) (re *Regexp, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case syntaxError:
			re, err = nil, fmt.Errorf("regex %q: %s", pattern, string(e))
		default:
			panic(e)
		}
	}()
	n := (&parser{rest: pattern, fancy: fancy}).all()
	re = &Regexp{guarded: endless(n)}
	if fancy && re.guarded {
		fail("a repetition of what can match no text is not supported: engines differ on it")
	}
	re.empty = first(n, &re.first)
	re.code = compile(n)
	return re, nil
}

// endless reports whether a loop of n could run forever.
func endless(n node) bool {
	switch n := n.(type) {
	case seqNode:
		return slices.ContainsFunc(n, endless)
	case altNode:
		return slices.ContainsFunc(n, endless)
	case repeatNode:
		return n.max < 0 && first(n.what, new([256]bool)) || endless(n.what)
	case atomicNode:
		return endless(n.what)
	case lookNode:
		return endless(n.what)
	}
	return false
}

// Each calls yield for the matches in text, from left to right, until it returns false. An empty match at the end of
// the previous match is skipped.
func (re *Regexp) Each(text string, yield func(start, end int) bool) {
	m := matcher{re: re, text: text}
	last := -1
	for from := 0; from <= len(text); {
		start, end, ok := m.search(from)
		if !ok {
			return
		}
		from = end
		if start == end {
			if from += width(text, end); start == last {
				continue
			}
		}
		last = end
		if !yield(start, end) {
			return
		}
	}
}

// width returns the length of the character at i; 1 at the end.
func width(text string, i int) int {
	if i == len(text) {
		return 1
	}
	_, n := utf8.DecodeRuneInString(text[i:])
	return n
}

// Class compiles a class, such as `[\p{L}_]`, to a test of single characters. It panics if it is not a class: classes
// are constants of a program.
func Class(pattern string) func(rune) bool {
	re, err := Compile(pattern)
	if err != nil {
		panic("onig: " + err.Error())
	}
	if len(re.code) != 2 || re.code[0].op != opChar {
		panic(fmt.Sprintf("onig: %q is not a class", pattern))
	}
	return re.code[0].set.has
}
