package main

import (
	"flag"
	"fmt"
	"strings"
)

// suggest returns ", did you mean X?" for the name closest to a misspelt one, and "" when none is close.
func suggest(prefix, misspelt string, names []string) string {
	best, least := "", max(2, len(misspelt)/3)+1
	for _, name := range names {
		if d := distance(misspelt, name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s%s?", prefix, best)
}

// distance is Levenshtein's: the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
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
