package mcp

import (
	"log/slog"
	"strings"
	"sync"
)

// tail keeps the end of what a command says on its standard error, for the reason of a failure.
type tail struct {
	logger *slog.Logger
	mu     sync.Mutex
	text   []byte
}

// maxTail is how many bytes are kept.
const maxTail = 500

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.logger.Info("the MCP server says", "text", strings.TrimSpace(string(p)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

// String is what was kept, as valid UTF-8.
func (t *tail) String() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "")
}
