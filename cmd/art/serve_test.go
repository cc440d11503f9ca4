package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/grpo/dataset"
	"github.com/goart-dev/art/internal/dev/gguftest"
)

// testServer is a server of the verb serve, on a free port.
type testServer struct {
	root, key string // how to call it
	text      string // what it printed
	stop      context.CancelFunc
	ended     chan error
	client    *http.Client
}

// startServer runs art serve until the test stops it, and waits until it can be called.
func startServer(t *testing.T, args ...string) *testServer {
	t.Helper()
	o := &serveOptions{headerTimeout: 10 * time.Second, idleTimeout: time.Minute}
	return startServerWith(t, o, args...)
}

func startServerWith(t *testing.T, o *serveOptions, args ...string) *testServer {
	t.Helper()
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	o.flags(flags)
	defineRunsDir(flags)
	rest, err := parse(flags, append([]string{"--addr", "127.0.0.1:0", "--context", "256", "--slots", "4"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	s := &testServer{stop: stop, ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	go func() {
		err := o.serve(ctx, rest, in, io.Discard)
		in.CloseWithError(io.EOF)
		s.ended <- err
	}()
	text := make([]byte, 4096) // one write
	n, err := out.Read(text)
	if err != nil {
		t.Fatalf("the server has not started: %v", <-s.ended)
	}
	s.text, s.key = string(text[:n]), o.key
	s.root = firstGroup(t, s.text, `at (https?://[^\s/]+)`)
	t.Cleanup(stop)
	return s
}

// end stops the server, which must succeed.
func (s *testServer) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.client.CloseIdleConnections()
}

// request makes a request with the key.
func (s *testServer) request(t *testing.T, method, path string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.root+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+s.key)
	return r
}

// do sends a request, and returns the status and the body.
func (s *testServer) do(t *testing.T, r *http.Request) (status int, body string) {
	t.Helper()
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}

// want sends a request and checks the status and texts of the body.
func (s *testServer) want(t *testing.T, method, path, body string, status int, texts ...string) string {
	t.Helper()
	got, answer := s.do(t, s.request(t, method, path, strings.NewReader(body)))
	if got != status {
		t.Errorf("%s %s: status %d, want %d: %s", method, path, got, status, answer)
	}
	for _, text := range texts {
		if !strings.Contains(answer, text) {
			t.Errorf("%s %s: no %q in %s", method, path, text, answer)
		}
	}
	return answer
}

// firstGroup returns what the group of a pattern matches.
func firstGroup(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in %s", pattern, text)
	}
	return found[1]
}

const chatPath = "/v1/chat/completions"

// chatBody asks a model, with further fields.
func chatBody(model, fields string) string {
	return `{"model": "` + model + `", "messages": [{"role": "user", "content": "7+5="}], "max_completion_tokens": 200` +
		fields + `}`
}

// TestServe_Requests: several models are served, under the names of the arguments, to those who have the key.
func TestServe_Requests(t *testing.T) {
	t.Setenv(keyVariable, "")
	run := newRun(t)
	s := startServer(t, "tiny", "other=tiny", "run="+run)
	if !strings.HasPrefix(s.key, "tml-") || strings.Count(s.text, "key: "+s.key) != 1 {
		t.Errorf("key %q in\n%s", s.key, s.text)
	}
	s.want(t, "GET", "/v1/models", "", 200, `"id":"tiny"`, `"id":"other"`, `"id":"run"`)
	for _, model := range []string{"tiny", "other", "run"} {
		s.want(t, "POST", chatPath, chatBody(model, ""), 200, `"role":"assistant"`, `"finish_reason":"stop"`)
	}
	s.want(t, "POST", chatPath, chatBody("tiny", `, "stream": true`), 200, `"delta":{`, "data: [DONE]")
	s.want(t, "POST", chatPath, chatBody("run", `, "logprobs": true`), 200, `"logprob":`)
	s.want(t, "POST", chatPath, chatBody("nothing", ""), 404, "there is", "tiny", "other")
	s.want(t, "GET", "/metrics", "", 200, `vllm:generation_tokens_total{model_name="run"}`,
		`vllm:num_requests_waiting{model_name="tiny"} 0`, `art_kv_cache_blocks{model_name="tiny",state="free"}`)
	for _, path := range []string{"/v1/models", "/metrics", "/v1/rollouts/x"} {
		r := s.request(t, "GET", path, nil)
		r.Header.Set("Authorization", "Bearer tml-wrong")
		if status, answer := s.do(t, r); status != 401 {
			t.Errorf("%s with a wrong key: status %d %s", path, status, answer)
		}
		r.Header.Del("Authorization")
		r.Header.Set("X-Api-Key", s.key)
		if status, answer := s.do(t, r); status == 401 {
			t.Errorf("%s with X-Api-Key: %s", path, answer)
		}
	}
	for _, path := range []string{"/health", "/readyz"} {
		r := s.request(t, "GET", path, nil)
		r.Header.Del("Authorization")
		if status, answer := s.do(t, r); status != 200 {
			t.Errorf("%s without a key: status %d %s", path, status, answer)
		}
	}
	s.end(t)
}

// TestServe_Weights: a GGUF file is served as it is stored, unless --weights says otherwise.
func TestServe_Weights(t *testing.T) {
	path := gguftest.Quantized(t, "../../model/tiny")
	for want, args := range map[string][]string{"stored": nil, "float32": {"--weights", "float32"}} {
		scratch := t.TempDir()
		t.Setenv("TMPDIR", scratch)
		t.Setenv("TMP", scratch) // on Windows
		s := startServer(t, append(args, "m="+path)...)
		found, err := filepath.Glob(filepath.Join(scratch, "art-*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v: %v", found, err)
		}
		run, _, err := rundir.Find(found[0], "m")
		if err != nil {
			t.Fatal(err)
		}
		if got := run.About().Weights; got != want {
			t.Errorf("%v: it is held as %q", args, got)
		}
		s.want(t, "POST", chatPath, chatBody("m", ""), 200, `"role":"assistant"`)
		s.end(t)
	}
}

// TestServe_Drain: a reply that is being streamed, and a request that is still being sent, are finished after the
// server is told to end; others are refused meanwhile, and nothing is left behind.
func TestServe_Drain(t *testing.T) {
	first := startServer(t, "tiny") // starts what the device keeps
	first.want(t, "POST", chatPath, chatBody("tiny", ""), 200)
	first.end(t)
	before := goleak.IgnoreCurrent()

	s := startServer(t, "tiny", "--key", "secret")
	streamed, err := s.client.Do(s.request(t, "POST", chatPath,
		strings.NewReader(chatBody("tiny", `, "stream": true, "min_tokens": 200`))))
	if err != nil {
		t.Fatal(err)
	}
	defer streamed.Body.Close()
	lines := bufio.NewReader(streamed.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Fatalf("%q %v", line, err)
	}
	end, answer := s.slow(t, chatBody("tiny", `, "stream": true`))
	s.stop()
	s.refused(t)
	s.want(t, "GET", "/health", "", 200)
	s.want(t, "POST", chatPath, chatBody("tiny", ""), 503, "shutting down")
	if err := end(); err != nil {
		t.Error(err)
	}
	if got := <-answer; !strings.HasSuffix(got, "data: [DONE]\n\n") || !strings.Contains(got, `"finish_reason":"stop"`) {
		t.Errorf("the request that was being sent: %q", got)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || !bytes.HasSuffix(rest, []byte("data: [DONE]\n\n")) {
		t.Errorf("the reply that was being streamed: %v, %q", err, rest)
	}
	s.end(t)
	goleak.VerifyNone(t, before)
}

// slow sends a chat request of which the server has seen the headers; end sends the body.
func (s *testServer) slow(t *testing.T, text string) (end func() error, answer <-chan string) {
	t.Helper()
	out, in := io.Pipe()
	reading := make(chan struct{})
	r := s.request(t, "POST", chatPath, out)
	r.Header.Set("Expect", "100-continue") // the server asks for the body when it handles the request
	trace := &httptrace.ClientTrace{Got100Continue: func() { close(reading) }}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	answers := make(chan string, 1)
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute, DisableKeepAlives: true}}
	go func() {
		response, err := client.Do(r)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			data = append(data, err.Error()...)
		}
		answers <- string(data)
	}()
	<-reading
	return func() error {
		_, err := io.WriteString(in, text)
		return errors.Join(err, in.Close())
	}, answers
}

// refused waits until the server says that it is not ready any more.
func (s *testServer) refused(t *testing.T) {
	t.Helper()
	for {
		status, answer := s.do(t, s.request(t, "GET", "/readyz", nil))
		if status == 503 {
			return
		}
		if status != 200 {
			t.Fatalf("/readyz: status %d %s", status, answer)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestServe_DrainTimeout: a request that does not end is cut off when the time is up, and the error counts it.
func TestServe_DrainTimeout(t *testing.T) {
	s := startServer(t, "tiny", "--drain", "50ms")
	end, answer := s.slow(t, chatBody("tiny", ""))
	s.stop()
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "1 requests have not been answered") {
		t.Errorf("error %v", err)
	}
	_ = end() // the client sees that the connection is closed when it goes on
	if got := <-answer; strings.Contains(got, "choices") {
		t.Errorf("it was answered: %q", got)
	}
}

// TestServe_Rollouts: with --rollouts complete groups are in the file, with the exact tokens.
func TestServe_Rollouts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "groups.jsonl")
	s := startServer(t, "tiny", "--rollouts", path)
	for _, reward := range []string{"1", "0"} {
		opened := s.want(t, "POST", "/v1/rollouts", `{"model": "tiny", "group": "sums", "group_size": 2}`, 201)
		base := firstGroup(t, opened, `"base":"(/r/[^"]+)"`)
		s.want(t, "POST", base+chatPath, chatBody("tiny", ""), 200)
		id := strings.TrimPrefix(base, "/r/")
		s.want(t, "POST", "/v1/rollouts/"+id+"/close", `{"reward": `+reward+`}`, 200)
	}
	s.end(t)
	n := 0
	for record, err := range dataset.Stream[art.TrajectoryGroup]([]string{path}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		group := record.Value
		if len(group.Trajectories) != 2 || group.Trajectories[0].Reward != 1 || group.Trajectories[1].Reward != 0 {
			t.Fatalf("%+v", group)
		}
		for _, trajectory := range group.Trajectories {
			if last := trajectory.Messages[len(trajectory.Messages)-1]; last.Sample == nil || len(last.Sample.IDs) == 0 {
				t.Errorf("no sample in %+v", last)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d groups in the file, want 1", n)
	}
}

// TestServe_SlowHeaders: a client that does not finish its headers is disconnected.
func TestServe_SlowHeaders(t *testing.T) {
	s := startServerWith(t, &serveOptions{headerTimeout: 100 * time.Millisecond, idleTimeout: time.Minute}, "tiny")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.root, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST "+chatPath+" HTTP/1.1\r\nHost: localhost\r\nX-"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection is still open: %v", err)
	}
	s.end(t)
}

// TestServe_Errors: each error says what to do.
func TestServe_Errors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string]string{
		"want at least one MODEL":                          "",
		"choose another address with --addr":               "--addr " + taken.Addr().String() + " tiny",
		`"nothing" is neither a folder, nor a file`:        "nothing",
		`would both be served as "tiny": give one another`: "tiny tiny",
		"give both or neither":                             "--tls-cert " + empty + " tiny",
		"failed to find any PEM data":                      "--tls-cert " + empty + " --tls-key " + empty + " tiny",
		"--drain -1s: want 0 or more":                      "--drain -1s tiny",
		"without a port":                                   "--addr 127.0.0.1:0 --hosts http://a tiny",
		"one of / \\ @":                                    "--addr 127.0.0.1:0 --context 64 --slots 1 a/b=tiny",
		`no device is called "tpu"`:                        "--addr 127.0.0.1:0 --device tpu tiny",
		`tool format "morse"`:                              "--addr 127.0.0.1:0 --context 64 --slots 1 --tool-format morse tiny",
		`Weights is "int4"`:                                "--addr 127.0.0.1:0 --weights int4 tiny",
		"--rollouts: open":                                 "--addr 127.0.0.1:0 --rollouts " + empty + "/x tiny",
	} {
		wantFailure(t, strings.TrimSpace("serve "+args), want)
	}
}

// TestStart_Text: the text has a new key, but not one that was given; the command quotes the name of the model, and the
// address is one that can be called.
func TestStart_Text(t *testing.T) {
	s := start{address: &net.TCPAddr{IP: net.IPv4zero, Port: 80}, models: []string{"it's"}, generated: true}
	text := s.text("tml-new")
	for _, want := range []string{"key: tml-new", "Bearer tml-new",
		`"model":"it'\''s"`, "http://127.0.0.1:80/v1", "warning:"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s = start{address: &net.TCPAddr{IP: net.IPv6loopback, Port: 80}, models: []string{"tiny"}}
	text = s.text("given")
	if strings.Contains(text, "given") || strings.Contains(text, "warning:") ||
		!strings.Contains(text, "http://[::1]:80/v1") {
		t.Error(text)
	}
}
