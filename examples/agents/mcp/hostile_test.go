package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// answers serves MCP by hand over HTTP: result is that of a method, given the cursor.
func answers(t *testing.T, result func(w http.ResponseWriter, method, cursor string) string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion, Cursor string }
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		text := `{"protocolVersion": "` + in.Params.ProtocolVersion + `", "capabilities": {"tools": {}, "resources": {}},
			"serverInfo": {"name": "hostile", "version": "1"}}`
		if in.Method != "initialize" {
			text = result(w, in.Method, in.Params.Cursor)
		}
		fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, "result": %s}`, in.ID, text)
	}))
	t.Cleanup(func() { // not Close: it waits for handlers
		server.CloseClientConnections()
		server.Listener.Close()
	})
	return server.URL
}

// TestConnect_EndlessLists: a list without an end, of tools or of resources, is an error soon, whatever its pages are.
func TestConnect_EndlessLists(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		page func(n int) string // of tools or resources, without the brackets
		next func(n int) string
		want string
	}{
		"pages":        {func(int) string { return "" }, func(n int) string { return fmt.Sprint(n) }, "more than 1000 pages"},
		"same cursor":  {func(int) string { return "" }, func(int) string { return "c" }, "no end"},
		"cursor cycle": {func(int) string { return "" }, func(n int) string { return fmt.Sprint(n % 3) }, "no end"},
		"large cursor": {func(int) string { return "" }, func(n int) string { return fmt.Sprint(n, large) }, "16 MiB"},
		"long pages": {func(n int) string {
			return fmt.Sprintf(`{"name": "t%d", "uri": "x://1", "description": %q, "inputSchema": {"type": "object"}}`, n, large)
		}, func(n int) string { return fmt.Sprint(n) }, "16 MiB"},
		"entries": {func(int) string {
			one := `{"name": "t", "uri": "x://1", "inputSchema": {"type": "object"}}`
			return one + strings.Repeat(","+one, 20_000)
		}, func(int) string { return "" }, "10000 entries"},
		"null":         {func(int) string { return "null" }, func(int) string { return "" }, ""},
		"endless body": {nil, nil, "16777216 bytes"},
	} {
		for _, kind := range []string{"tools", "resources"} {
			var calls, sent atomic.Int64
			url := answers(t, func(w http.ResponseWriter, method, _ string) string {
				if method != kind+"/list" {
					return `{"tools": [], "resources": []}`
				}
				if c.page == nil {
					for piece := strings.Repeat(" ", 1<<16); ; sent.Add(1 << 16) {
						if _, err := io.WriteString(w, piece); err != nil {
							return ""
						}
					}
				}
				n := int(calls.Add(1))
				return fmt.Sprintf(`{%q: [%s], "nextCursor": %q}`, kind, c.page(n), c.next(n))
			})
			s, err := mcp.Open(url, nil)
			if err != nil {
				t.Fatal(err)
			}
			session, err := s.Connect(t.Context())
			if err == nil {
				_ = session.Close()
			}
			if err == nil != (name == "null" && kind == "tools") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s of %s: error %.300v, want %q", name, kind, err, c.want)
			}
			if n := calls.Load(); n > 1001 {
				t.Errorf("%s of %s: %d pages are read", name, kind, n)
			}
		}
	}
}

// TestConnect_OtherHost: headers and messages go to the host of the address only, not where it redirects to, nor where
// an SSE server wants messages.
func TestConnect_OtherHost(t *testing.T) {
	options := &mcp.Options{Header: http.Header{"x-key": {secrettest.Key}}}
	connect := func(address string) error {
		s, err := mcp.Open(address, options)
		if err != nil {
			t.Fatal(err)
		}
		session, err := s.Connect(t.Context())
		if err == nil {
			_ = session.Close()
		}
		return err
	}
	for _, prefix := range []string{"", "sse+"} {
		url, got := secrettest.Redirecting(t, http.StatusTemporaryRedirect)
		if err := connect(prefix + url); err == nil || got() > 0 {
			t.Errorf("%s: %d requests at another host; error %v", prefix, got(), err)
		}
	}
	var stolen atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer other.Close()
	var sent string
	lure := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("X-Key")
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer lure.Close()
	err := connect("sse+" + lure.URL)
	if err == nil || !strings.Contains(err.Error(), "another host") || stolen.Load() > 0 {
		t.Errorf("%d requests at another host; error %v", stolen.Load(), err)
	}
	if sent != secrettest.Key {
		t.Errorf("the server itself got %q", sent)
	}
}

// TestConnect_Echo: what a server repeats of a header is neither in an error nor in what the model reads.
func TestConnect_Echo(t *testing.T) {
	options := &mcp.Options{Header: http.Header{"X-Key": {secrettest.Key}}}
	s, err := mcp.Open(secrettest.Echoing(t, http.StatusUnauthorized), options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Connect(t.Context()); err == nil || secrettest.Leaks(err.Error()) != "" {
		t.Errorf("error %v", err)
	}
	said := "it is " + secrettest.Key
	s = mcp.InProcess("echo", func() *sdk.Server { return odd("say " + said) }, options)
	session, err := s.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if text, _, err := session.Call(t.Context(), "poke", nil); err != nil || text != "it is [redacted]" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestCommand_Environment: a command gets what the official SDKs pass on, and what it is given.
func TestCommand_Environment(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other names")
	}
	t.Setenv("ART_TEST_API_KEY", secrettest.Key)
	t.Setenv("TERM", "() { :; }")
	t.Setenv("LOGNAME", "me")
	session, err := command(t, "environment", mcp.Options{Env: []string{"LANG=C", "MY_TOKEN=of-the-server"}}).
		Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	text, _, err := session.Call(t.Context(), "poke", nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{serveAs, "LANG", "LOGNAME", "MY_TOKEN"}
	for _, name := range []string{"HOME", "PATH", "SHELL", "USER"} {
		if _, ok := os.LookupEnv(name); ok {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(names, want) || strings.Contains(text, "of-the-server") {
		t.Errorf("it has %q, want %q", text, want)
	}
}
