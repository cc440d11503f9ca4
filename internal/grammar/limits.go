package grammar

import "fmt"

// Limits bound the time and memory of a compilation. A zero field means its default.
type Limits struct {
	SchemaBytes int // length of a schema; default 256 KiB
	Depth       int // nesting of the brackets of a schema; default 128
	Repeat      int // bound of one repetition: maxLength, maxItems, {n}; default 8,192
	States      int // states of all automata of a grammar; default 400,000
	Rules       int // distinct subschemas after references and alternatives are combined; default 10,000
	Work        int // elementary steps of building automata, about 20 ns each; default 50,000,000
}

// LimitError says which limit a grammar exceeds.
type LimitError struct {
	Limit string // name of the field of Limits
	Max   int    // its value
	What  string // what was compiled
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("grammar: %s exceeds the limit %s of %d; simplify it or raise the limit", e.What, e.Limit, e.Max)
}

// withDefaults fills the zero fields.
func (l Limits) withDefaults() Limits {
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&l.SchemaBytes, 256<<10)
	fill(&l.Depth, 128)
	fill(&l.Repeat, 8192)
	fill(&l.States, 400_000)
	fill(&l.Rules, 10_000)
	fill(&l.Work, 50_000_000)
	return l
}

// budget counts what a compilation has used. Exceeding it unwinds by a panic with a *LimitError, which Compile turns
// into its error: automata are built by deep recursion, where an error result of each call would hide the construction.
type budget struct {
	limits Limits
	states int
	work   int
}

// addState counts one state.
func (b *budget) addState() {
	if b.states++; b.states > b.limits.States {
		panic(&LimitError{"States", b.limits.States, "the grammar"})
	}
}

// spend counts n steps of work.
func (b *budget) spend(n int) {
	if b.work += n; b.work > b.limits.Work {
		panic(&LimitError{"Work", b.limits.Work, "the grammar"})
	}
}

// checkRepeat bounds one repetition.
func (b *budget) checkRepeat(n int, what string) {
	if n > b.limits.Repeat {
		panic(&LimitError{"Repeat", b.limits.Repeat, fmt.Sprintf("%s %d", what, n)})
	}
}

// catchLimit stores the *LimitError of a panic in err and lets every other panic pass.
func catchLimit(err *error) {
	switch problem := recover().(type) {
	case nil:
	case *LimitError:
		*err = problem
	default:
		panic(problem)
	}
}
