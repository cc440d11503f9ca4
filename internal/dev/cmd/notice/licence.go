package main

import "strings"

// licences are the ones that are permitted, by SPDX identifier, with a phrase that only their text has. More than one
// may be in a file.
var licences = []struct{ id, phrase string }{
	{"Apache-2.0", "apache license version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD-3-Clause", "be used to endorse or promote products derived from"},
	{"BSD-2-Clause", "redistribution and use in source and binary forms"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"OFL-1.1", "sil open font license version 1.1"},
	{"CC-BY-4.0", "creative commons attribution 4.0 international public license"},
	{"FTL", "the freetype project license"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// chosen are the modules that offer a choice of licences: the file with the one that is taken.
var chosen = map[string]string{
	"github.com/golang/freetype": "licenses/ftl.txt", // its LICENSE offers the FreeType or the GNU license
}

// forbidding are phrases of licences that ask for more than a notice.
var forbidding = []string{
	"gnu general public license", "gnu lesser general public license", "gnu affero general public license",
	"mozilla public license", "business source license", "server side public license", "commons clause",
}

// licencesIn returns the SPDX identifiers of the licences in a text, and the phrases of those that are not permitted.
func licencesIn(text string) (ids, refused []string) {
	text = strings.Join(strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return strings.ContainsRune(" \t\r\n*#/", c)
	}), " ")
	for _, phrase := range forbidding {
		if strings.Contains(text, phrase) {
			refused = append(refused, phrase)
		}
	}
	for _, l := range licences {
		threeClauses := len(ids) > 0 && ids[len(ids)-1] == "BSD-3-Clause" // which contain the two
		if strings.Contains(strings.ReplaceAll(text, "license, version", "license version"), l.phrase) &&
			(l.id != "BSD-2-Clause" || !threeClauses) {
			ids = append(ids, l.id)
		}
	}
	return ids, refused
}
