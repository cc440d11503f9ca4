package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// helpWords ask for help, in place of a verb.
var helpWords = map[string]bool{"help": true, "-h": true, "-help": true, "--help": true}

// help prints the help of the command, or of the verb or the group that is named.
func help(args []string, stdout io.Writer) error {
	if len(args) == 0 || helpWords[args[0]] {
		return write(stdout, overview())
	}
	name, size := args[0], 1
	if g, ok := findGroup(name); ok {
		if len(args) == 1 {
			return write(stdout, g.help())
		}
		name, size = name+" "+args[1], 2
	}
	v, ok := verbs[name]
	switch {
	case !ok:
		return unknownVerb([]string{"help"}, name, args[size:])
	case len(args) > size:
		return badUsage("help: one verb at a time")
	}
	return write(stdout, v.help(name))
}

// unknownVerb says that there is no verb of a name, of one word or two. If a verb in another group, or in none, has it,
// the error has the command as it has to be: before and after are what stands around the name.
func unknownVerb(before []string, name string, after []string) error {
	group, typed := splitName(name)
	typable := map[string]string{"help": "help"} // what could be meant, by what was typed
	for _, g := range groups {
		typable[g.name] = g.name
	}
	var near []string
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		g, last := splitName(name)
		if typable[last] = name; g == group {
			near = append(near, last)
		}
	}
	if right, ok := typable[typed]; ok && typed != "help" {
		line := "art"
		for _, word := range slices.Concat(before, strings.Fields(right), after) {
			line += " " + shellQuote(word)
		}
		return badUsage("there is no art %s: it is\n\n  %s", name, line)
	}
	meant := closest(typed, near)
	if meant == "" {
		meant = closest(typed, slices.Sorted(maps.Keys(typable)))
	}
	text := fmt.Sprintf("no verb is called %q", name)
	if meant != "" {
		text += fmt.Sprintf(", did you mean %s?", typable[meant])
	}
	if g, ok := findGroup(group); ok {
		return badUsage("%s\n\n%s", text, g.help())
	}
	return badUsage("%s\n\n%s", text, overview())
}

// splitName returns the group of a verb, empty for one without, and its own name.
func splitName(name string) (group, own string) {
	group, own, ok := strings.Cut(name, " ")
	if !ok {
		return "", name
	}
	return group, own
}

// overview is the help of the command.
func overview() string {
	var b strings.Builder
	b.WriteString("usage: art VERB [flags] [arguments]\n\n")
	b.WriteString(summaries(""))
	for _, g := range groups {
		fmt.Fprintf(&b, "\n%s: %s\n%s", g.name, g.summary, summaries(g.name))
	}
	b.WriteString("\n`art help VERB` says more. Flags may come before and after arguments; -- ends them.\n")
	return b.String()
}

// help is the help of a group.
func (g group) help() string {
	text := fmt.Sprintf("usage: art %s VERB [flags] [arguments]\n\n%s\n\n", g.name, g.summary) + summaries(g.name) + "\n"
	if g.alone != "" {
		text += fmt.Sprintf("`art %s` alone is `art %[1]s %s`. ", g.name, g.alone)
	}
	return text + fmt.Sprintf("`art help %s VERB` says more.\n", g.name)
}

// summaries has a line for each verb of a group, or of none.
func summaries(group string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		if g, _ := splitName(name); g == group {
			fmt.Fprintf(&b, "  %-15s %s\n", name, verbs[name].summary)
		}
	}
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
