package mcp_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/examples/agents/mcp/synthetic"
)

// A server offers and answers the same however it is reached, and each session has data of its own.
func TestConnect_Transports(t *testing.T) {
	begin := func() *sdk.Server { return synthetic.Calendar.Serve(1) }
	_, val := synthetic.Calendar.Scenarios(1, 1)
	i := slices.IndexFunc(val, func(s mcp.Scenario) bool { return strings.HasPrefix(s.Task, "Remove") })
	remove := val[i].Want.Calls[0]
	args, err := json.Marshal(remove.Args)
	if err != nil {
		t.Fatal(err)
	}
	var first *mcp.Description
	for name, s := range map[string]*mcp.Server{
		"in process": mcp.InProcess("calendar", begin, nil), "command": command(t, "calendar", mcp.Options{}),
		"streamable": over(t, false, begin, nil), "sse": over(t, true, begin, nil),
	} {
		for range 2 { // the second session finds the event that the first removed
			session, err := s.Connect(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			about := session.Description()
			if first == nil {
				first = about
			}
			if !reflect.DeepEqual(about, first) {
				t.Errorf("%s: offers %+v, another %+v", name, about, first)
			}
			text, failed, err := session.Call(t.Context(), remove.Tool, args)
			if err != nil || failed || text != "removed" {
				t.Errorf("%s: %q, failed %v, %v", name, text, failed, err)
			}
			if text, failed, err := session.Call(t.Context(), remove.Tool, args); err != nil || !failed {
				t.Errorf("%s: removed twice: %q, failed %v, %v", name, text, failed, err)
			}
			if text, failed, err := session.Read(t.Context(), "calendar://about"); err != nil || failed || text == "" {
				t.Errorf("%s: the resource is %q, failed %v, %v", name, text, failed, err)
			}
			if _, failed, err := session.Read(t.Context(), "calendar://none"); err != nil || !failed {
				t.Errorf("%s: a resource that is not there: failed %v, %v", name, failed, err)
			}
			if err := session.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if len(first.Tools) != 4 || len(first.Resources) != 1 {
		t.Errorf("%+v", first)
	}
	want := `{"type": "object", "properties": {"event": {"type": "string"}, "day": {"type": "string"}}, ` +
		`"required": ["event", "day"]}`
	i = slices.IndexFunc(first.Tools, func(t art.Tool) bool { return t.Name == "move_event" })
	if got := string(first.Tools[i].Parameters); got != want {
		t.Errorf("the schema is\n%s, want\n%s", got, want)
	}
}

func TestOpen_Invalid(t *testing.T) {
	for _, address := range []string{"", "  ", "no-such-command --x", `sh "open`, "http://", "sse+https:///x"} {
		if s, err := mcp.Open(address, nil); err == nil {
			t.Errorf("%q is %v", address, s.Name())
		}
	}
	if s, err := mcp.Open(`sh -c 'exit 3'`, nil); err != nil {
		t.Error(err)
	} else if _, err := s.Connect(t.Context()); err == nil {
		t.Error("a command that ends at once is a server")
	}
	if s, err := mcp.Open("http://127.0.0.1:1/mcp", nil); err != nil {
		t.Error(err)
	} else if _, err := s.Describe(t.Context()); err == nil {
		t.Error("nobody is a server")
	}
}

// What a tool returns is cut to the budget, at the end of a character, and says so.
func TestCall_Budget(t *testing.T) {
	s := mcp.InProcess("large", func() *sdk.Server { return odd("large") }, &mcp.Options{MaxResult: 100})
	session, err := s.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	text, failed, err := session.Call(t.Context(), "poke", nil)
	if err != nil || failed || utf8.RuneCountInString(text) != 100 ||
		!strings.HasSuffix(text, "ü [cut: 100000 characters]") {
		t.Errorf("%q, failed %v, %v", text, failed, err)
	}
}

// Contents that are no text are named.
func TestCall_Mixed(t *testing.T) {
	s := mcp.InProcess("mixed", func() *sdk.Server { return odd("mixed") }, nil)
	session, err := s.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	text, _, err := session.Call(t.Context(), "poke", nil)
	if want := "a\n[image, image/png, 4 bytes]\n[resource x://1]"; err != nil || text != want {
		t.Errorf("%q, want %q; %v", text, want, err)
	}
}

// What is no UTF-8 reaches the model as U+FFFD.
func TestCall_InvalidUTF8(t *testing.T) {
	session, err := command(t, "raw", mcp.Options{}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	text, failed, err := session.Call(t.Context(), "poke", nil)
	if err != nil || failed || text != "a\uFFFD\uFFFDb" {
		t.Errorf("%q, failed %v, %v", text, failed, err)
	}
}

// A failure of the server is an error that names it, however the server is reached; what the server says is wrong with
// a call is a result.
func TestCall_Failures(t *testing.T) {
	short := mcp.Options{CallTimeout: time.Second}
	begin := func(name string) func() *sdk.Server { return func() *sdk.Server { return odd(name) } }
	var all sync.WaitGroup
	for name, c := range map[string]struct {
		server *mcp.Server
		want   string // part of the error; empty: the call failed, and the session goes on
	}{
		"hangs":                {mcp.InProcess("hang", begin("hang"), &short), "no answer within 1s"},
		"command hangs":        {command(t, "hang", short), "no answer within 1s"},
		"hangs over HTTP":      {over(t, false, begin("hang"), &short), "no answer within 1s"},
		"crashes":              {command(t, "crash", mcp.Options{}), "out of cheese"},
		"20 MB":                {command(t, "huge", mcp.Options{}), "tool poke"},
		"20 MB over HTTP":      {over(t, false, begin("huge"), nil), "tool poke"},
		"changes its tools":    {mcp.InProcess("grow", begin("grow"), nil), "changed its tools"},
		"command that changes": {command(t, "grow", mcp.Options{}), "changed its tools"},
		"refuses":              {mcp.InProcess("panic", begin("panic"), nil), ""},
	} {
		if testing.Short() && strings.HasPrefix(name, "20 MB") {
			continue // takes seconds
		}
		all.Go(func() { // they wait more than they compute
			session, err := c.server.Connect(t.Context())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			text, failed, err := session.Call(t.Context(), "poke", nil)
			switch {
			case c.want == "" && (err != nil || !failed || !strings.Contains(text, "no such thing")):
				t.Errorf("%s: %q, failed %v, %v", name, text, failed, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: %.200q, %.300v; want an error with %q", name, text, err, c.want)
			}
			if err := session.Close(); err != nil && c.want == "" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
}
