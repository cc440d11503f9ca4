package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art/backend/server/child"
)

// childVariable makes this test binary the command art, or a program that starts it with runs in a folder.
const (
	childVariable = "ART_TEST_CHILD"
	dirVariable   = "ART_TEST_CHILD_DIR"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "art":
		main()
	case "parent":
		s, err := child.Start(context.Background(), childOptions(os.Getenv(dirVariable)))
		if err != nil {
			panic(err)
		}
		fmt.Println(s.URL)
		select {}
	default:
		os.Exit(m.Run())
	}
}

// childOptions start art serve --train as a child.
func childOptions(dir string) *child.Options {
	return &child.Options{
		Command: []string{os.Args[0], "serve"}, Env: []string{childVariable + "=art"}, Key: "tml-of-a-test",
		Args: []string{"--train", "org/name=tiny", "--dir", dir, "--context", "64", "--slots", "2"},
	}
}

// statusOf asks a server for its training runs. It is 0 when nobody listens.
func statusOf(t *testing.T, url, key string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/training_runs", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestServe_Child: a server in a child process answers with its key, and ends when it is told to.
func TestServe_Child(t *testing.T) {
	s, err := child.Start(t.Context(), childOptions(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if status := statusOf(t, s.URL, s.Key); status != http.StatusOK || strings.Join(s.Models, " ") != "org/name" {
		t.Errorf("status %d, models %q", status, s.Models)
	}
	if status := statusOf(t, s.URL, "tml-other"); status != http.StatusUnauthorized {
		t.Errorf("another key: status %d", status)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if status := statusOf(t, s.URL, s.Key); status != 0 {
		t.Errorf("after Close: status %d", status)
	}
}

// lastingDir is a folder for a process that nobody waits for: it may still write while it ends.
func lastingDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "art")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 500 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}

func TestServe_ParentKilled(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), childVariable+"=parent", dirVariable+"="+lastingDir(t))
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url := strings.TrimSpace(line)
	if status := statusOf(t, url, "tml-of-a-test"); err != nil || status != http.StatusOK {
		t.Fatalf("%q: status %d, error %v", url, status, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	for range 500 {
		if statusOf(t, url, "tml-of-a-test") == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the server still answers")
}

// TestServe_ChildWithoutKey: nobody could call it.
func TestServe_ChildWithoutKey(t *testing.T) {
	t.Setenv(keyVariable, "")
	s := &serveOptions{child: true, addr: "127.0.0.1:0"}
	if err := s.serve(t.Context(), []string{"tiny"}, nil, nil); err == nil || !strings.Contains(err.Error(), keyVariable) {
		t.Errorf("error %v", err)
	}
}
