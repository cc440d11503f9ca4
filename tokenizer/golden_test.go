package tokenizer

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// testdata reads a file of the folder of that name.
func testdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// small is our own vocabulary of 542 tokens with the control tokens of ChatML.
func small(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := New(testdata(t, "tokenizer.json"), []byte(`{"eos_token": "<|im_end|>"}`))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// patched returns tokenizer.json of testdata with some of its parts replaced; those of "model" one by one.
func patched(t testing.TB, patch map[string]json.RawMessage) []byte {
	t.Helper()
	var base, model, modelPatch map[string]json.RawMessage
	must(t, json.Unmarshal(testdata(t, "tokenizer.json"), &base))
	must(t, json.Unmarshal(base["model"], &model))
	if patch["model"] != nil {
		must(t, json.Unmarshal(patch["model"], &modelPatch))
	}
	maps.Copy(base, patch)
	maps.Copy(model, modelPatch)
	var err error
	base["model"], err = json.Marshal(model)
	must(t, err)
	out, err := json.Marshal(base)
	must(t, err)
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGolden holds every supported setting against Hugging Face's tokenizers. testdata/make_golden.py says how the file
// was made.
func TestGolden(t *testing.T) {
	var groups []struct {
		Name   string
		Patch  map[string]json.RawMessage
		Cases  []referenceCase
		Broken []brokenCase
	}
	must(t, json.Unmarshal(testdata(t, "golden.json"), &groups))
	for _, g := range groups {
		t.Run(g.Name, func(t *testing.T) {
			tok, err := New(patched(t, g.Patch), nil)
			must(t, err)
			runReference(t, tok, g.Cases)
			runBroken(t, tok, g.Broken)
		})
	}
	if len(groups) < 40 {
		t.Errorf("golden.json has %d groups only", len(groups))
	}
}
