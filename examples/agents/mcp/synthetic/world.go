// Package synthetic has MCP servers with made-up data, scenarios whose solution is known, and an exact checker: for
// tests, and to see whether a training works before it costs anything.
//
// There are two, orders and a calendar. Their data is a function of a seed, and each session begins with it afresh.
// The checker carries out a trajectory's calls again, on the same data, and looks at what has become of it. So it needs
// nothing of the server, which may be another process, and nothing that a trajectory says can sway it.
package synthetic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art/examples/agents/mcp"
)

// World is the data behind a server, at one moment. It is not for concurrent use.
type World interface {
	// Tools are what can be done.
	Tools() []Tool
	// Call carries out a call and returns what the agent gets to read. Its error is what is wrong with the call.
	Call(tool string, args map[string]string) (string, error)
	// Equal tells whether another world of the domain has the same data.
	Equal(other World) bool
}

// Tool is a tool whose parameters are all texts, and required.
type Tool struct {
	Name, About string
	Params      []string
}

// Domain makes worlds, and scenarios in them.
type Domain struct {
	Name string
	// New returns the world of a seed.
	New func(seed uint64) World
	// scenarios returns those about each thing. Every third thing is for validation.
	scenarios func(seed uint64, rng *rand.Rand) [][]mcp.Scenario
}

// Domains are those that there are.
var Domains = []Domain{Orders, Calendar}

// Find returns the domain of a name.
func Find(name string) (Domain, bool) {
	i := slices.IndexFunc(Domains, func(d Domain) bool { return d.Name == name })
	if i < 0 {
		return Domain{}, false
	}
	return Domains[i], true
}

// Scenarios returns scenarios of up to a difficulty, in random order: 1 is one call, 2 is two of which the second needs
// the result of the first. Those to validate with are about other orders or events than those to train on.
func (d Domain) Scenarios(seed uint64, difficulty int) (train, val []mcp.Scenario) {
	rng := rand.New(rand.NewPCG(seed, 0x5ce))
	for i, about := range d.scenarios(seed, rng) {
		if i%3 == 2 {
			val = append(val, about...)
		} else {
			train = append(train, about...)
		}
	}
	for i, list := range []*[]mcp.Scenario{&train, &val} {
		*list = slices.DeleteFunc(*list, func(s mcp.Scenario) bool { return s.Difficulty > difficulty })
		rng.Shuffle(len(*list), func(a, b int) { (*list)[a], (*list)[b] = (*list)[b], (*list)[a] })
		for j := range *list {
			(*list)[j].ID = fmt.Sprintf("%s-%s-%03d", d.Name, []string{"train", "val"}[i], j)
		}
	}
	return train, val
}

// ids draws n different numbers from low to high.
func ids(rng *rand.Rand, n, low, high int) []string {
	seen := map[int]bool{}
	var list []string
	for len(list) < n {
		if id := low + rng.IntN(high-low+1); !seen[id] {
			seen[id] = true
			list = append(list, strconv.Itoa(id))
		}
	}
	return list
}

// arguments reads those of a call: texts or numbers, no others than the tool has, and all of these.
func arguments(t *Tool, text json.RawMessage) (map[string]string, error) {
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object == nil {
		return nil, errors.New("the arguments are no JSON object")
	}
	args := map[string]string{}
	for name, value := range object {
		switch v := value.(type) {
		case string:
			args[name] = strings.TrimSpace(v)
		case json.Number:
			args[name] = v.String()
		default:
			return nil, fmt.Errorf("%s must be a text", name)
		}
		if !slices.Contains(t.Params, name) {
			return nil, fmt.Errorf("%s has no argument %s", t.Name, name)
		}
	}
	for _, name := range t.Params {
		if args[name] == "" {
			return nil, fmt.Errorf("%s wants %s", t.Name, name)
		}
	}
	return args, nil
}

func carryOut(w World, tool string, text json.RawMessage) (string, error) {
	tools := w.Tools()
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == tool })
	if i < 0 {
		return "", fmt.Errorf("there is no tool %s", tool)
	}
	args, err := arguments(&tools[i], text)
	if err != nil {
		return "", err
	}
	return w.Call(tool, args)
}

// Serve returns an MCP server over a new world of a seed. It is for one session: what that one changes stays.
func (d Domain) Serve(seed uint64) *sdk.Server {
	w, mu := d.New(seed), &sync.Mutex{}
	server := sdk.NewServer(&sdk.Implementation{Name: d.Name, Version: "1"}, nil)
	for _, t := range w.Tools() {
		server.AddTool(&sdk.Tool{Name: t.Name, Description: t.About, InputSchema: t.schema()},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				mu.Lock()
				defer mu.Unlock()
				text, err := carryOut(w, t.Name, r.Params.Arguments)
				if err != nil {
					text = err.Error()
				}
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: err != nil}, nil
			})
	}
	uri := d.Name + "://about"
	server.AddResource(&sdk.Resource{URI: uri, Name: "about", Description: "What the tools do.", MIMEType: "text/plain"},
		func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			text := &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: about(w)}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{text}}, nil
		})
	return server
}

func about(w World) string {
	var b strings.Builder
	for _, t := range w.Tools() {
		fmt.Fprintf(&b, "%s: %s\n", t.Name, t.About)
	}
	return b.String()
}

func (t *Tool) schema() json.RawMessage {
	var properties, required []string
	for _, name := range t.Params {
		properties = append(properties, fmt.Sprintf(`%q: {"type": "string"}`, name))
		required = append(required, fmt.Sprintf("%q", name))
	}
	return json.RawMessage(fmt.Sprintf(`{"type": "object", "properties": {%s}, "required": [%s]}`,
		strings.Join(properties, ", "), strings.Join(required, ", ")))
}
