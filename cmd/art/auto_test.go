package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art/ruler"
)

// A task in words becomes a page, by way of a hosted writer and judge and the built-in model. Again, it is finished.
func TestAuto(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	attempts := regexp.MustCompile(`(?s)<attempt-\w+ id="(\w+)"[^>]*>\n(.*?)\n</attempt-`)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var request struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		n, prompt := asked.Add(1), request.Messages[len(request.Messages)-1].Content
		answer := "Say yes."
		switch found := attempts.FindAllStringSubmatch(prompt, -1); {
		case found != nil:
			var ratings []ruler.Rating
			for _, a := range found {
				ratings = append(ratings, ruler.Rating{ID: a[1], Explanation: "short", Score: 1 / float64(1+len(a[2])%7)})
			}
			answer = ruler.Answer(ratings...)
		case strings.Contains(prompt, `"inputs"`):
			answer = fmt.Sprintf(`{"inputs": [{"input": "Is %d red?"}, {"input": "May we go to %d now?"}]}`, n, 100*n)
		}
		text, err := json.Marshal(answer)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
			"message": {"role": "assistant", "content": %s}}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`, text)
	}))
	defer server.Close()
	dir := t.TempDir()
	t.Chdir(dir)
	arguments := []string{"auto", "Answer yes or no.",
		"--writer", "w@" + server.URL + "/v1", "--judge", "j@" + server.URL + "/v1",
		"--inputs", "4", "--held", "2", "--steps", "2", "--batch", "1", "--every", "2", "--max-tokens", "6", "--run", "yes"}
	for range 2 {
		var stdout, stderr bytes.Buffer
		if code := runCommand(arguments, &stdout, &stderr); code != 0 {
			t.Fatalf("status %d: %s", code, stderr.String())
		}
		if text := stdout.String(); !strings.Contains(text, "judge   at most") || !strings.Contains(text, "win rate") {
			t.Errorf("it prints %s", text)
		}
	}
	page, err := os.ReadFile(filepath.Join(runsRoot(), "auto", "projects", "yes", "result.html"))
	if err != nil || !strings.Contains(string(page), "Answer yes or no.") || !strings.Contains(string(page), "at step 2") {
		t.Errorf("the page: %v, %.500s", err, page)
	}
}

func TestAuto_Estimate(t *testing.T) {
	var stdout, stderr bytes.Buffer
	arguments := []string{"auto", "--estimate", "--judge", "gpt-4o@https://api.openai.com/v1", "Do a thing."}
	code := runCommand(arguments, &stdout, &stderr)
	if code != 0 || strings.Count(stdout.String(), "$0.00") != 1 || !strings.Contains(stdout.String(), "model") {
		t.Errorf("status %d, %s%s", code, stdout.String(), stderr.String())
	}
	for _, arguments := range [][]string{{"auto"}, {"auto", "Do a thing."}, {"auto", "x", "--judge",
		"j@http://127.0.0.1:1"}} {
		stdout.Reset()
		if code := runCommand(arguments, &stdout, &stderr); code != 2 || stdout.Len() > 0 {
			t.Errorf("without a task, or a model that can write: status %d, %s", code, stdout.String())
		}
	}
}
