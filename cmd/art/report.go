package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/secret"
)

func init() {
	verbs["runs report"] = verb{
		summary: "a redacted bundle of a run, for a bug report or a colleague",
		args:    "RUN",
		runs:    true,
		text: `
Writes a zip file about a run: what it was begun with, its history, the list of its files, the
version of art and the machine, and a plot of the rewards. Trajectories, which hold what was said,
are only in it with --trajectories; weights never are. Folders of this machine, user names and
keys are replaced: values of environment variables that are named like a key, and whatever has the
form or the name of one. Look at it before you hand it on.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			var r reporter
			flags.StringVar(&r.out, "out", "report.zip", "`file` to write")
			flags.BoolVar(&r.trajectories, "trajectories", false, "add the trajectories, as JSON")
			return r.run
		},
	}
}

// reporter is the verb runs report with its flags.
type reporter struct {
	out          string
	trajectories bool
}

func (r *reporter) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return badUsage("want one RUN")
	}
	run, _, err := findRun(args[0])
	if err != nil {
		return err
	}
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	hidden := newRedactor()
	parts := []func(*rundir.Run) (map[string][]byte, error){aboutPart, historyPart, listPart, plotPart}
	if r.trajectories {
		parts = append(parts, trajectoriesPart)
	}
	for _, part := range parts {
		files, err := part(run)
		if err != nil {
			return err
		}
		for _, name := range sortedKeys(files) {
			w, err := z.Create(hidden.text(name))
			if err != nil {
				return err
			}
			if _, err := w.Write(hidden.file(name, files[name])); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(z.Close(), os.WriteFile(r.out, file.Bytes(), 0o644)); err != nil {
		return err
	}
	return write(stdout, fmt.Sprintf("%s  %s\n", r.out, quantity.Bytes(int64(file.Len()))))
}

// aboutPart is what the run was begun with, and by what.
func aboutPart(r *rundir.Run) (map[string][]byte, error) {
	steps, err := r.Steps()
	if err != nil {
		return nil, err
	}
	info, _ := debug.ReadBuildInfo()
	about := r.About()
	if filepath.IsAbs(about.Base) { // a folder of this machine that may be neither in HOME nor in HERE
		about.Base = "FOLDER/" + filepath.Base(about.Base)
	}
	content, err := json.MarshalIndent(map[string]any{
		"run": about, "steps": steps, "art": versionOf(info), "cores": runtime.NumCPU(),
	}, "", "  ")
	return map[string][]byte{"about.json": content}, err
}

func historyPart(r *rundir.Run) (map[string][]byte, error) {
	content, err := os.ReadFile(filepath.Join(r.Dir(), "history.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return map[string][]byte{"history.jsonl": content}, err
}

// listPart lists the files of the run with their sizes.
func listPart(r *rundir.Run) (map[string][]byte, error) {
	var b bytes.Buffer
	err := filepath.WalkDir(r.Dir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.Dir(), path)
		fmt.Fprintf(&b, "%12d  %s  %s\n", info.Size(), info.ModTime().UTC().Format("2006-01-02 15:04:05"),
			filepath.ToSlash(name))
		return err
	})
	return map[string][]byte{"files.txt": b.Bytes()}, err
}

// plotPart draws the rewards, if there are any.
func plotPart(r *rundir.Run) (map[string][]byte, error) {
	rows, err := r.History()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = plot.Write(&b, "svg", &plot.Chart{Title: "reward", Y: "reward", Series: []plot.Series{
		{Name: "train/reward", Points: plot.History(rows, "train/reward"), Smooth: true},
		{Name: "val/reward", Points: plot.History(rows, "val/reward")},
	}})
	return map[string][]byte{"reward.svg": b.Bytes()}, err
}

// trajectoriesPart is what was said.
func trajectoriesPart(r *rundir.Run) (map[string][]byte, error) {
	stored, err := r.Trajectories()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for split, steps := range stored {
		for _, step := range steps {
			groups, err := r.ReadTrajectories(split, step)
			if err != nil {
				return nil, err
			}
			content, err := json.MarshalIndent(groups, "", " ")
			if err != nil {
				return nil, err
			}
			out[fmt.Sprintf("trajectories/%s/%04d.json", split, step)] = content
		}
	}
	return out, nil
}

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
