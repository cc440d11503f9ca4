package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// plain is an agent without a client library.
func plain(ctx context.Context, r *Rollout, turns int) (received []string) {
	var messages []map[string]any
	for turn := range turns {
		messages = append(messages, map[string]any{"role": "user", "content": fmt.Sprint("turn ", turn)})
		reply := ""
		for reply == "" {
			limited, cancel := context.WithTimeout(ctx, time.Duration(r.Rand.IntN(100)+1)*time.Millisecond)
			reply = ask(limited, r.Base, messages)
			cancel()
		}
		received = append(received, reply)
		messages = append(messages, map[string]any{"role": "assistant", "content": reply})
	}
	return received
}

// ask asks for a reply, "" when there is none.
func ask(ctx context.Context, base string, messages []map[string]any) string {
	body, _ := json.Marshal(map[string]any{"model": "any", "messages": messages})
	r, err := http.NewRequestWithContext(ctx, "POST", base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return ""
	}
	r.Header.Set("Authorization", "Bearer "+Key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var read struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.NewDecoder(response.Body).Decode(&read) != nil || len(read.Choices) == 0 {
		return ""
	}
	return read.Choices[0].Message.Content
}

// Requests that fail, are cut or given up leave each token in one sample.
func TestServer_Plain(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	New(t, seed).Play(16, 10, seed, plain)
}
