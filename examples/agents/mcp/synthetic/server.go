package synthetic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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

// about lists the tools of a world.
func about(w World) string {
	var b strings.Builder
	for _, t := range w.Tools() {
		fmt.Fprintf(&b, "%s: %s\n", t.Name, t.About)
	}
	return b.String()
}

// schema describes the parameters.
func (t *Tool) schema() json.RawMessage {
	var properties, required []string
	for _, name := range t.Params {
		properties = append(properties, fmt.Sprintf(`%q: {"type": "string"}`, name))
		required = append(required, fmt.Sprintf("%q", name))
	}
	return json.RawMessage(fmt.Sprintf(`{"type": "object", "properties": {%s}, "required": [%s]}`,
		strings.Join(properties, ", "), strings.Join(required, ", ")))
}
