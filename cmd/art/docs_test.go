package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	inlineCode = regexp.MustCompile("`([^`]+)`")
	flagName   = regexp.MustCompile(`^--?([a-z][a-z0-9-]*)`)
	artCommand = regexp.MustCompile(`(?:^|[(|;&]\s*)(?:go run ./cmd/art|art) ([a-z][^|;&#\n]*)`)
)

// shownCommands returns the commands of art in the shell blocks and the inline code of a page.
func shownCommands(markdown string) (list []string) {
	code := shellBlock.FindAllStringSubmatch(markdown, -1)
	code = append(code, inlineCode.FindAllStringSubmatch(shellBlock.ReplaceAllString(markdown, ""), -1)...)
	for _, block := range code {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			for _, match := range artCommand.FindAllStringSubmatch(line, -1) {
				list = append(list, match[1])
			}
		}
	}
	return list
}

// unknown returns what of a command does not exist: its verb, or flags.
func unknown(shown string) (list []string) {
	words := strings.Fields(shown)
	name, rest := words[0], words[1:]
	if name == "help" {
		placeholder := strings.ToUpper(strings.Join(rest, "")) == strings.Join(rest, "")
		if placeholder || help(rest, io.Discard) == nil {
			return nil
		}
		return rest
	}
	if g, ok := findGroup(name); ok {
		if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
			rest = append([]string{g.alone}, rest...)
		}
		name, rest = name+" "+rest[0], rest[1:]
	}
	v, ok := verbs[name]
	if !ok {
		return []string{name}
	}
	flags, _ := v.flags(name)
	for _, word := range rest {
		if word == "--" {
			break // the rest is another program's
		}
		if name := flagName.FindStringSubmatch(word); name != nil && flags.Lookup(name[1]) == nil {
			list = append(list, word)
		}
	}
	return list
}

// TestDocs: the pages show verbs and flags that there are.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, page := range append(pages, "../../README.md", "../../SECURITY.md", "../../examples/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range shownCommands(string(text)) {
			shown++
			for _, problem := range unknown(u) {
				t.Errorf("%s: art %s: there is no %s", filepath.Base(page), u, problem)
			}
		}
	}
	if shown < 50 {
		t.Errorf("only %d commands were found: does shownCommands still read the pages?", shown)
	}
}

// TestDocs_OldNames: no file names a verb without its group, but notes of earlier days.
func TestDocs_OldNames(t *testing.T) {
	var own []string
	for name := range verbs {
		if group, last := splitName(name); group != "" {
			own = append(own, last)
		}
	}
	old := regexp.MustCompile(`\bart(?:, "| )(?:help )?(?:` + strings.Join(own, "|") + `)\b(?:[^:]|$)`)
	read := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains([]string{".git", ".art", "testdata"}, entry.Name()), path == "../../docs/log":
			return fs.SkipDir
		case !slices.Contains([]string{".go", ".md", ".py", ".html", ".yml", ".tmpl", ".cuda", ""}, filepath.Ext(path)),
			entry.IsDir(), path == "../../cmd/art/docs_test.go":
			return nil
		}
		text, err := os.ReadFile(path)
		for _, command := range old.FindAll(text, -1) {
			t.Errorf("%s: %s: it has a group", path, command)
		}
		read++
		return err
	})
	if err != nil || read < 500 {
		t.Errorf("%d files are read, %v", read, err)
	}
}

// TestShownCommands: commands are found in blocks and in text, and what does not exist in them is found.
func TestShownCommands(t *testing.T) {
	const page = "Run `art runs --json`, `art help runs show`, `art help show` or `art`.\n\n```sh\n" +
		"art serve tiny \\\n    --addr :80 --nothing 1 # art gone\nFOO=1 art gone\n" +
		"go run ./cmd/art runs sweep --seeds 3 -- go run . -rate 1 | art lost\nart runs lost x\nart model\n```\n"
	var got []string
	for _, shown := range shownCommands(page) {
		if list := unknown(shown); list != nil {
			got = append(got, strings.Join(list, " "))
		}
	}
	if want := []string{"--nothing", "lost", "runs lost", "model ", "show"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
