package main

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"text/template"
)

//go:embed project/agent.go project/reward.go project/*.tmpl
var projectFiles embed.FS

const modulePath = "github.com/goart-dev/art"

func init() {
	verbs["init"] = verb{
		summary: "lay out a project: agent, reward, training loop, a test that trains",
		args:    "DIR",
		text: `
Writes a small project that trains an agent: "cd DIR && go run ." trains it, "go test ./..." checks
that training makes it better. DIR must not exist, or be empty. Its last part is the name of the
project and, unless --module is set, of its Go module.

The project requires the version of this program. A program that was built from a checkout has none:
name the checkout with --replace.`,
		define: func(flags *flag.FlagSet) action {
			i := initVerb{}
			flags.StringVar(&i.module, "module", "", "`path` of the Go module")
			flags.StringVar(&i.replace, "replace", "", "`checkout` of this library to build the project with")
			return i.run
		},
	}
}

// initVerb is the verb init with its flags.
type initVerb struct{ module, replace string }

// nameOfProject is what a project may be called: it is part of file names and of a module path.
var nameOfProject = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func (i *initVerb) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return badUsage("want one DIR")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	name := filepath.Base(dir)
	if !nameOfProject.MatchString(name) {
		return badUsage("%q: a project is called by letters, digits, _, . and -", name)
	}
	i.module = cmp.Or(i.module, name)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: take another folder", dir)
	}
	modules, err := i.modules()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := writeProject(dir, name, modules); err != nil {
		return err
	}
	if i.replace == "" {
		c := exec.Command("go", "mod", "tidy")
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("go mod tidy: %w\n%s", err, out)
		}
	}
	return write(stdout, fmt.Sprintf("cd %s\ngo run .\ngo test ./...\n", args[0]))
}

// writeProject writes the files of a project, and those of modules.
func writeProject(dir, name string, modules map[string][]byte) error {
	entries, err := projectFiles.ReadDir("project")
	if err != nil {
		return err
	}
	files := modules
	for _, e := range entries {
		text, err := projectFiles.ReadFile("project/" + e.Name())
		if err != nil {
			return err
		}
		target, isTemplate := strings.CutSuffix(e.Name(), ".tmpl")
		if !isTemplate {
			files[target] = bytes.Replace(text, []byte("package project"), []byte("package main"), 1)
			continue
		}
		t, err := template.New(target).Parse(string(text))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, map[string]string{"Name": name}); err != nil {
			return err
		}
		if target == "gitignore" {
			target = ".gitignore"
		}
		files[target] = b.Bytes()
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// modules returns go.mod, and go.sum for a checkout: its own requirements, so that nothing needs to be resolved.
func (i *initVerb) modules() (map[string][]byte, error) {
	if i.replace == "" {
		info, ok := debug.ReadBuildInfo()
		if !ok || !strings.HasPrefix(info.Main.Version, "v") || strings.Contains(info.Main.Version, "+dirty") ||
			strings.HasPrefix(info.Main.Version, "v0.0.0-") {
			return nil, errors.New("this program has no published version: name a checkout of the library with --replace")
		}
		mod := fmt.Sprintf("module %s\n\ngo 1.26.5\n\nrequire %s %s\n", i.module, modulePath, info.Main.Version)
		return map[string][]byte{"go.mod": []byte(mod)}, nil
	}
	checkout, err := filepath.Abs(i.replace)
	if err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("--replace %s: %w", i.replace, err)
	}
	requirements, found := strings.CutPrefix(string(mod), "module "+modulePath+"\n")
	if !found {
		return nil, fmt.Errorf("--replace %s: its go.mod is not that of %s", i.replace, modulePath)
	}
	sum, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("--replace %s: %w", i.replace, err)
	}
	own := fmt.Sprintf("module %s\n%s\nrequire %s v0.0.0\n\nreplace %s => %q\n", i.module, requirements, modulePath,
		modulePath, checkout)
	return map[string][]byte{"go.mod": []byte(own), "go.sum": sum}, nil
}
