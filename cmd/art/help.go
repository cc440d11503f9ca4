package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
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
	for _, name := range sortedKeys(verbs) {
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
	meant := cmp.Or(closest(typed, near), closest(typed, sortedKeys(typable)))
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
	for _, name := range sortedKeys(verbs) {
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

// suggest returns ", did you mean X?" for the name closest to a misspelt one, and "" when none is close.
func suggest(prefix, misspelt string, names []string) string {
	if best := closest(misspelt, names); best != "" {
		return fmt.Sprintf(", did you mean %s%s?", prefix, best)
	}
	return ""
}

// closest returns the name that a misspelt one was probably meant to be: at most a third of its letters differ. Of
// equals it is one with the same first letter, which people rarely get wrong. "" when none is close.
func closest(misspelt string, names []string) string {
	typed := []rune(strings.ToLower(misspelt))
	best, least := "", 1<<30
	for _, name := range names {
		want := []rune(strings.ToLower(name))
		if len(want) == 0 || len(typed) == 0 {
			continue
		}
		d := 2 * distance(typed, want)
		if 3*d > 2*max(len(typed), len(want)) {
			continue
		}
		if typed[0] != want[0] {
			d++
		}
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace, and of neighbours to swap, to turn a into b: the
// Damerau-Levenshtein distance, by optimal string alignment.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			d := min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// explain adds to an error of package flag which flag was meant, and how to give text that looks like a flag.
func explain(err error, flags *flag.FlagSet) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return fmt.Errorf("there is no flag --%s%s (write -- before text that begins with -)", name,
		suggest("--", name, names))
}
