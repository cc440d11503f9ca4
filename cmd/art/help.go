package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// help prints the help of the command, or of the verb that is named.
func help(args []string, stdout io.Writer) error {
	switch {
	case len(args) == 0, slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]):
		return write(stdout, overview())
	case len(args) > 1:
		return badUsage("help: one verb at a time")
	}
	v, ok := verbs[args[0]]
	if !ok {
		return unknownVerb(args[0])
	}
	return write(stdout, v.help(args[0]))
}

func unknownVerb(name string) error {
	names := slices.Sorted(maps.Keys(verbs))
	return badUsage("no verb is called %q%s\n\n%s", name, suggest("", name, append(names, "help")), overview())
}

// overview is the help of the command.
func overview() string {
	var b strings.Builder
	b.WriteString("usage: art VERB [flags] [arguments]\n\n")
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		fmt.Fprintf(&b, "  %-10s %s\n", name, verbs[name].summary)
	}
	b.WriteString("\n`art help VERB` says more. Flags may come before and after arguments; -- ends them.\n")
	return b.String()
}

// help is the help of a verb.
func (v verb) help(name string) string {
	var b strings.Builder
	flags, _ := v.flags(name)
	usage := strings.TrimRight("usage: art "+name+" [flags] "+v.args, " ")
	fmt.Fprintf(&b, "%s\n\n%s\n\nflags:\n", usage, strings.TrimSpace(v.text))
	flags.VisitAll(func(f *flag.Flag) {
		kind, text := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimRight("--"+f.Name+" "+kind, " "), text)
	})
	return b.String()
}
