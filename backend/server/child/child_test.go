package child_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art/backend/server/child"
)

// roleVariable says what the test binary is when it is started again.
const roleVariable = "ART_CHILD_TEST"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "parent":
		parent()
	case "silent":
		child.Parent(context.Background(), time.Minute)
		select {}
	case "broken":
		fmt.Fprintln(os.Stderr, "no model, and the key is", os.Getenv(child.KeyVariable))
		os.Exit(3)
	case "noisy":
		fmt.Println("hello")
		select {}
	default:
		serve(role)
	}
}

// serve is a server that answers with its key. One that is stuck does not end by itself.
func serve(role string) {
	grace := 30 * time.Second // the race detector alone takes a second to exit
	if role == "stuck" {
		grace = 200 * time.Millisecond
	}
	ctx := child.Parent(context.Background(), grace)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/crash" {
				os.Exit(7)
			}
			_, _ = io.WriteString(w, os.Getenv(child.KeyVariable)+" "+strings.Join(os.Args[1:], " "))
		}))
	}()
	if err := child.Ready(os.Stdout, "http://"+listener.Addr().String(), []string{"tiny"}); err != nil {
		panic(err)
	}
	<-ctx.Done()
	if role == "stuck" {
		select {}
	}
}

// parent starts a server, tells its address, and waits to be killed.
func parent() {
	s, err := child.Start(context.Background(), options(os.Getenv(roleVariable+"_SERVER")))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.URL)
	select {}
}

// options start this test again in a role.
func options(role string) *child.Options {
	return &child.Options{
		Command: []string{os.Args[0]}, Args: []string{"--train", "tiny"}, Env: []string{roleVariable + "=" + role},
		Key: "tml-of-a-test", Grace: 10 * time.Second,
	}
}

// start starts a server that must start.
func start(t *testing.T, opts *child.Options) *child.Server {
	t.Helper()
	s, err := child.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get asks a server. The error is that of the connection.
func get(t *testing.T, url string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// checkGone waits until nobody listens at an address any more.
func checkGone(t *testing.T, url string) {
	t.Helper()
	for range 1500 {
		if _, err := get(t, url); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the server still answers")
}

// checkError fails unless an error has a text.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestStart(t *testing.T) {
	s := start(t, options("server"))
	const want = "tml-of-a-test --child --addr 127.0.0.1:0 --train tiny"
	if body, err := get(t, s.URL); err != nil || body != want {
		t.Errorf("key and arguments %q, error %v, want %q", body, err, want)
	}
	if s.Key != "tml-of-a-test" || !slices.Equal(s.Models, []string{"tiny"}) || s.Err() != nil {
		t.Errorf("%+v, error %v", s, s.Err())
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	<-s.Done()
	checkGone(t, s.URL)
}

// TestStart_NewKey: the key is one that the SDKs of Tinker and of W&B accept, and another one each time.
func TestStart_NewKey(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		opts := options("server")
		opts.Key = ""
		s := start(t, opts)
		body, err := get(t, s.URL)
		if err != nil || !strings.HasPrefix(body, s.Key+" ") || !strings.HasPrefix(s.Key, "tml-") || len(s.Key) != 40 {
			t.Errorf("key %q, the server has %q, error %v", s.Key, body, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		seen[s.Key] = true
	}
	if len(seen) != 2 {
		t.Error("two servers have the same key")
	}
}

// TestParent_Killed: the server ends when its parent is killed, also one that does not end by itself.
func TestParent_Killed(t *testing.T) {
	for _, role := range []string{"server", "stuck"} {
		t.Run(role, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), roleVariable+"=parent", roleVariable+"_SERVER="+role)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			url := strings.TrimSpace(line)
			if err == nil {
				_, err = get(t, url)
			}
			if err != nil {
				t.Fatalf("while the parent lives: %v", err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed
			checkGone(t, url)
		})
	}
}

// TestClose_Stuck: a server that does not end is killed, and the error says so.
func TestClose_Stuck(t *testing.T) {
	opts := options("stuck")
	opts.Grace = time.Millisecond
	s := start(t, opts)
	checkError(t, s.Close(), "was killed")
	checkGone(t, s.URL)
}

// TestServer_Crashes: the parent is told.
func TestServer_Crashes(t *testing.T) {
	s := start(t, options("server"))
	if body, err := get(t, s.URL+"/crash"); err == nil {
		t.Errorf("it answers %s", body)
	}
	<-s.Done()
	checkError(t, s.Err(), "exit status 7")
	checkError(t, s.Close(), "exit status 7")
}

// TestStart_Fails: each error says what is wrong, and the key is in none.
func TestStart_Fails(t *testing.T) {
	var stderr bytes.Buffer
	opts := options("broken")
	opts.Stderr = &stderr
	_, err := child.Start(t.Context(), opts)
	checkError(t, err, "exit status 3: no model, and the key is KEY")
	if !strings.Contains(stderr.String(), "no model") {
		t.Errorf("standard error is %q", &stderr)
	}
	_, err = child.Start(t.Context(), options("noisy"))
	checkError(t, err, `it wrote "hello`)

	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("no time left"))
	defer cancel()
	_, err = child.Start(ctx, options("silent"))
	checkError(t, err, "no time left")

	_, err = child.Start(t.Context(), &child.Options{Command: []string{"art-that-is-not-there"}})
	checkError(t, err, "Options.Command")
}
