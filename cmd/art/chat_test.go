package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
)

// chatWith runs art chat on lines of a user.
func chatWith(t *testing.T, args []string, lines ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	setInput(t, strings.Join(lines, "\n")+"\n")
	args = append([]string{"--max-tokens", "8", "--context", "256"}, args...)
	if err := verbs["chat"].execute("chat", append(args, "tiny"), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// saved reads the chats of a file.
func saved(t *testing.T, path string) (list []art.Example) {
	t.Helper()
	for record, err := range dataset.Stream[art.Example]([]string{path}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, record.Value)
	}
	return list
}

// TestChat_Saved: what is saved is the chat: replies in their places, without what was taken back.
func TestChat_Saved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.jsonl")
	out := chatWith(t, []string{"--system", "Reply with a number."},
		"7+5=", `a text of \`, "two lines", "/undo", "/save "+path, "/reset", "Hello", "/save "+path, "/nothing", "/quit", "unread")
	list := saved(t, path)
	if len(list) != 2 || len(list[0].Messages) != 3 || len(list[1].Messages) != 3 {
		t.Fatalf("saved %+v\n%s", list, out)
	}
	for i, question := range []string{"7+5=", "Hello"} {
		m := list[i].Messages
		if m[0].Content != "Reply with a number." || m[1].Content != question || m[2].Role != art.RoleAssistant {
			t.Errorf("chat %d: %+v", i, m)
		}
		if !strings.Contains(out, "> "+m[2].Content+"\n") {
			t.Errorf("no reply %q in\n%s", m[2].Content, out)
		}
	}
	if !strings.Contains(out, "/nothing is no command") || strings.Contains(out, "unread") {
		t.Error(out)
	}
}

// TestChat_Tokens: with --tokens each token is followed by its probability.
func TestChat_Tokens(t *testing.T) {
	out := chatWith(t, []string{"--tokens"}, "7+5=")
	if !strings.Contains(out, "<|im_end|>[") {
		t.Errorf("no probability in %q", out)
	}
}

// TestChat_Tools: after a call the line is the result of the tool, and the model goes on with it.
func TestChat_Tools(t *testing.T) {
	tools := filepath.Join(t.TempDir(), "tools.json")
	list := []art.Tool{{Name: "roll_die", Description: "Roll a die.", Parameters: json.RawMessage(
		`{"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}`)}}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tools, data, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "chats.jsonl")
	out := chatWith(t, []string{"--tools", tools, "--max-tokens", "64"}, "Roll a die with 6 sides.", "5", "/save "+path)
	if !strings.Contains(out, `calls roll_die({"sides": 6})`) || !strings.Contains(out, "result of roll_die> ") {
		t.Fatal(out)
	}
	m := saved(t, path)[0].Messages
	if len(m) != 4 || m[2].Role != art.RoleTool || m[2].Content != "5" || m[2].ToolCallID != m[1].ToolCalls[0].ID {
		t.Errorf("%+v", m)
	}
}

// TestChat_ContextFull: a reply that has no room takes the message back, and the chat goes on.
func TestChat_ContextFull(t *testing.T) {
	out := chatWith(t, nil, strings.Repeat("word ", 400), "7+5=")
	if strings.Count(out, "you> ") != 3 || !strings.Contains(out, "taken back") {
		t.Error(out)
	}
}

// TestPrintable: what a model writes cannot control the terminal.
func TestPrintable(t *testing.T) {
	got := printable("a\x1b[2Jb\r\u009b31m\u202ec\n\td\x7f")
	if got != "a\u241b[2Jb\u240d\ufffd31m\ufffdc\n\td\u2421" {
		t.Errorf("%q", got)
	}
}
