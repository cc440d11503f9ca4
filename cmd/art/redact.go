package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/secret"
)

// redactor replaces keys, folders of this machine, and the name of the user.
type redactor struct {
	secrets []string    // of the environment
	places  [][2]string // folders, the longest first, and what stands for them
	user    *regexp.Regexp
}

func newRedactor() *redactor {
	r := &redactor{secrets: environmentSecrets(os.Environ())}
	home, _ := os.UserHomeDir()
	here, _ := os.Getwd()
	for _, place := range [][2]string{{home, "HOME"}, {here, "HERE"}} {
		if len(place[0]) > 1 {
			r.places = append(r.places, place)
		}
	}
	slices.SortStableFunc(r.places, func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	if user := os.Getenv("USER"); len(user) > 3 {
		r.user = regexp.MustCompile(`\b` + regexp.QuoteMeta(user) + `\b`)
	}
	return r
}

// environmentSecrets lists the values of variables that are named like a secret, and the passwords in URLs of others.
func environmentSecrets(environment []string) (list []string) {
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case slices.Contains([]string{"true", "false", "none", "null"}, strings.ToLower(value)): // NO_TOKEN=true
		case secret.IsName(name):
			list = append(list, value)
		default:
			if u, err := url.Parse(value); err == nil && u.User != nil {
				password, _ := u.User.Password()
				list = append(list, password)
			}
		}
	}
	return list
}

// file redacts a file by the ending of its name.
func (r *redactor) file(name string, content []byte) []byte {
	switch filepath.Ext(name) {
	case ".json":
		var indented bytes.Buffer
		if out, ok := secret.JSON(content, r.local); ok && json.Indent(&indented, out, "", " ") == nil {
			return indented.Bytes()
		}
	case ".jsonl":
		var out []byte
		for line := range bytes.Lines(content) {
			redacted, ok := secret.JSON(line, r.local)
			if !ok { // the last one, of a run that was killed
				redacted = []byte(r.text(strings.TrimSpace(string(line))))
			}
			out = append(append(out, redacted...), '\n')
		}
		return out
	}
	return []byte(r.text(string(content)))
}

// text redacts a text.
func (r *redactor) text(text string) string { return r.local(secret.Text(text)) }

// local replaces in a text what is known of this machine.
func (r *redactor) local(text string) string {
	text = secret.Hide(text, r.secrets)
	for _, place := range r.places {
		text = strings.ReplaceAll(text, place[0], place[1])
	}
	if r.user != nil {
		text = r.user.ReplaceAllString(text, "USER")
	}
	return text
}
