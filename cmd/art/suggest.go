package main

import (
	"flag"
	"fmt"
	"strings"
)

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
