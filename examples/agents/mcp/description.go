package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art"
)

// Resource is something that a server offers to read.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Description is what a server offers.
type Description struct {
	Tools     []art.Tool `json:"tools"`
	Resources []Resource `json:"resources,omitempty"`
}

// Describe opens a session, returns what the server offers, and closes it. A server without tools is an error: there
// is nothing to train.
func (s *Server) Describe(ctx context.Context) (*Description, error) {
	session, err := s.Connect(ctx)
	if err != nil {
		return nil, err
	}
	about := session.Description()
	if err := session.Close(); err != nil {
		s.opts.Logger.Warn("a session did not close", "server", s.name, "err", err)
	}
	if len(about.Tools) == 0 {
		return nil, invalid("mcp", fmt.Errorf("%s offers no tools", s.name), "take a server with tools")
	}
	if slices.ContainsFunc(about.Tools, func(t art.Tool) bool { return t.Name == CompleteTool }) {
		return nil, invalid("mcp", fmt.Errorf("%s has a tool %q, which is what ends a rollout", s.name, CompleteTool),
			"rename the server's tool")
	}
	return about, nil
}

// differs says how the tools of other differ from those of d, "" when they are the same.
func (d *Description) differs(other *Description) string {
	var differences []string
	before, after := byName(d.Tools), byName(other.Tools)
	for _, t := range d.Tools {
		switch text, ok := after[t.Name]; {
		case !ok:
			differences = append(differences, t.Name+" is gone")
		case text != before[t.Name]:
			differences = append(differences, t.Name+" is another")
		}
	}
	for _, t := range other.Tools {
		if _, ok := before[t.Name]; !ok {
			differences = append(differences, t.Name+" is new")
		}
	}
	return strings.Join(differences, ", ")
}

// byName maps names of tools to their JSON.
func byName(tools []art.Tool) map[string]string {
	m := map[string]string{}
	for i := range tools {
		text, err := json.Marshal(tools[i])
		if err != nil {
			text = []byte(err.Error())
		}
		m[tools[i].Name] = string(text)
	}
	return m
}

// convertTool makes a tool for the model. The SDK forgets the order of the keys of a schema, so they are put into the
// usual one: see [orderedSchema].
func convertTool(t *sdk.Tool) (art.Tool, error) {
	if t == nil || t.Name == "" {
		return art.Tool{}, errors.New("the server offers a tool without a name")
	}
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return art.Tool{}, fmt.Errorf("the schema of the tool %s: %w", t.Name, err)
	}
	ordered, err := orderedSchema(schema)
	if err != nil {
		return art.Tool{}, fmt.Errorf("the schema of the tool %s: %w", t.Name, err)
	}
	description := t.Description
	if description == "" {
		description = t.Title
	}
	return art.Tool{Name: t.Name, Description: description, Parameters: ordered}, nil
}
