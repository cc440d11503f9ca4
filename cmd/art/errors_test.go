package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// failures are typical mistakes of each verb, but of those that cannot fail but by their flags.
var failures = map[string][]string{
	"auto":           {"x --model nope", "x", "x --writer a@b", "x --dir file/x --model nope", "x --writer nope --judge nope"},
	"debug bench":    {"decode nope", "device --run conv", ""},
	"chat":           {"nope", "run:nope"},
	"runs dash":      {"nope", "--addr x"},
	"runs diff":      {"nope nope file", "tiny tiny nope", "tiny tiny file"},
	"doctor":         {"--jsn", "x"},
	"eval":           {"nope file", "run:nope file", "tiny nope", "tiny file"},
	"model export":   {"nope out", "run:nope out", "damaged out", "tiny file"},
	"runs fork":      {"nope new", "damaged new"},
	"debug generate": {"nope x", "run:nope x", "tiny --messages file", "tiny --temperature -1 x"},
	"init":           {"file", "file/x"},
	"model inspect":  {"nope", "file", ".", "damaged"},
	"runs migrate":   {"nope", ".", "file"},
	"runs plot":      {"nope", "damaged", "damaged --out x", "damaged@9"},
	"model pull":     {"nope", "a/b@"},
	"model quantize": {"nope out", "run:nope out", "damaged out", "tiny out", "tiny .", "tiny out --type x"},
	"debug render":   {"nope", "tiny nope", "tiny file"},
	"runs replay":    {"nope@1", "damaged@1", "damaged@x"},
	"runs report":    {"nope", "damaged"},
	"runs compare":   {"nope nope", "nope", "a/b/c/d x"},
	"runs list":      {"a b", "--jsn"},
	"runs prune":     {"nope", "damaged", "damaged damaged"},
	"debug score":    {"nope x", "damaged x", "tiny"},
	"serve":          {"nope", "tiny --addr x", "damaged", "--train nope --addr 127.0.0.1:0"},
	"sft":            {"nope", ".", "file", "file --batch -1", "file --model nope", "--fork a@x good", "--name x file"},
	"runs show":      {"nope", "damaged", "damaged --split x"},
	"runs sweep":     {"", "-- true", "--metric x -- true {dir}"},
	"debug tokenize": {"nope x", "file x", "damaged x"},
	"train":          {"", "x tiny", "words nope", "words file", "words tiny --device nope", "words tiny --fork a@x"},
	"version":        {"x"},
	"runs watch":     {"nope", "nope@x", "damaged --once"},
}

// TestErrors_PrefixOnce: whatever fails in a verb, its error has one prefix, then the verb, and nothing twice in a row.
func TestErrors_PrefixOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"file": "no JSON\n", "good": `{"messages": [{"role": "user", "content": "a"}]}` + "\n",
		".art/default/models/damaged/model.json":      "{",
		".art/default/models/damaged/checkpoints/1/x": "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	words := regexp.MustCompile(`[^:()]+: `)
	for verb := range verbs {
		if len(failures[verb]) == 0 {
			t.Errorf("%s: no failure is tried", verb)
		}
		for _, args := range failures[verb] {
			args = strings.TrimSpace(verb + " " + args)
			status, _, stderr := command(strings.Fields(args)...)
			if status == 0 {
				t.Errorf("art %s succeeds", args)
				continue
			}
			lines := strings.Split(stderr, "\n")
			for len(lines) > 1 && !strings.HasPrefix(lines[0], "art: ") { // progress
				lines = lines[1:]
			}
			line := lines[0]
			if !strings.HasPrefix(line, "art: "+verb+": ") || strings.Count(line, "art: ") != 1 {
				t.Errorf("art %s: %s", args, stderr)
			}
			parts := words.FindAllString(line, -1)
			for i := 1; i < len(parts); i++ {
				if parts[i] == parts[i-1] {
					t.Errorf("art %s: %q twice in %s", args, parts[i], line)
				}
			}
		}
	}
}
