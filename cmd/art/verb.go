package main

import (
	"flag"
	"io"
)

// verb is what the first argument names.
type verb struct {
	summary string // one line
	args    string // what may follow the flags, as help writes it; empty: nothing
	text    string // what help says besides, in lines of up to 100 columns

	// define adds the flags and returns what reads them after they were parsed.
	define func(flags *flag.FlagSet) action
}

// action does what a verb is for. Results go to stdout; an error is printed by the caller.
type action func(args []string, stdout, stderr io.Writer) error

// verbs by name. Each file of a verb adds its own.
var verbs = map[string]verb{}

// flags returns the flags of a verb, which print nothing, and its action.
func (v verb) flags(name string) (*flag.FlagSet, action) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags, v.define(flags)
}
