package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

const head = `art
Copyright 2026 The art authors

Licensed under the Apache License, Version 2.0; see LICENSE. The built-in model, model/tiny, was made by this project
and has the same licence; docs/built-in-model.md says how.

The command art is compiled with the modules below. A program that imports the library has those of the packages that
it uses. Their licences and notices in full are in THIRD_PARTY_LICENSES.txt of a release, and are written by
"go run ./internal/dev/cmd/notice -texts FILE", which also made this list with "-update NOTICE".

`

// noticeOf returns the content of NOTICE.
func noticeOf(modules []*module) string {
	var b bytes.Buffer
	b.WriteString(head)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, m := range modules {
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.path, m.version, strings.Join(m.licences, ", "))
	}
	w.Flush()
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// fullTexts returns the licences and notices of all modules.
func fullTexts(modules []*module) []byte {
	var b bytes.Buffer
	for _, m := range modules {
		for _, t := range m.texts {
			title := strings.TrimSpace(m.path+" "+m.version) + ", " + t.path
			fmt.Fprintf(&b, "%s\n%s\n\n%s\n\n", title, strings.Repeat("=", len(title)), strings.TrimSpace(t.content))
		}
	}
	return b.Bytes()
}
