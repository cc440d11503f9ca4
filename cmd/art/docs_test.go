package main

import (
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
	artCommand = regexp.MustCompile(`(?:^|[(|;&]\s*)(?:go run ./cmd/art|art) ([a-z]+)([^|;&#\n]*)`)
)

// shownCommand is a command as a page shows it.
type shownCommand struct{ verb, rest string }

// shownCommands returns the commands of art in the shell blocks and the inline code of a page.
func shownCommands(markdown string) (list []shownCommand) {
	code := shellBlock.FindAllStringSubmatch(markdown, -1)
	code = append(code, inlineCode.FindAllStringSubmatch(shellBlock.ReplaceAllString(markdown, ""), -1)...)
	for _, block := range code {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			for _, match := range artCommand.FindAllStringSubmatch(line, -1) {
				list = append(list, shownCommand{match[1], match[2]})
			}
		}
	}
	return list
}

// unknown returns what of a command does not exist: its verb, or flags.
func (u shownCommand) unknown() (list []string) {
	v, ok := verbs[u.verb]
	if !ok && u.verb != "help" {
		return []string{u.verb}
	}
	if u.verb == "help" {
		return nil
	}
	flags, _ := v.flags(u.verb)
	for _, word := range strings.Fields(u.rest) {
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
			for _, problem := range u.unknown() {
				t.Errorf("%s: art %s%s: there is no %s", filepath.Base(page), u.verb, u.rest, problem)
			}
		}
	}
	if shown < 50 {
		t.Errorf("only %d commands were found: does shownCommands still read the pages?", shown)
	}
}

// TestShownCommands: commands are found in blocks and in text, and what does not exist in them is found.
func TestShownCommands(t *testing.T) {
	const page = "Run `art runs compare a b --json` or `art`.\n\n```sh\n" +
		"art serve tiny \\\n    --addr :80 --nothing 1 # art gone\nFOO=1 art gone\ngo run ./cmd/art sweep --seeds 3 -- go run . -rate 1 | art lost\nart help nothing\n```\n"
	var got []string
	for _, u := range shownCommands(page) {
		got = append(got, strings.Join(append([]string{u.verb}, u.unknown()...), " "))
	}
	if want := []string{"serve --nothing", "sweep", "lost lost", "help", "runs"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
