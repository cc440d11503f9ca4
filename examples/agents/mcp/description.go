package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// convertTool makes a tool for the model, its keys in the usual order, which the SDK forgets: see [orderedSchema].
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
	return art.Tool{Name: t.Name, Description: cmp.Or(t.Description, t.Title), Parameters: ordered}, nil
}

// Limits of what a server may offer in all pages of a list. A page is a message, see [maxMessage].
const (
	maxPages     = 1000
	maxListed    = 10_000   // tools, or resources
	maxListBytes = 16 << 20 // in JSON
)

// list reads what the server offers. A server without resources, or without tools, has none of them.
func (s *Session) list(ctx context.Context) (about Description, err error) {
	offers := s.client.InitializeResult().Capabilities
	if offers.Tools != nil {
		err = pages("tools", func(cursor string) (int, string, any, error) {
			page, err := s.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
			if err != nil {
				return 0, "", nil, err
			}
			for _, t := range page.Tools {
				converted, err := convertTool(t)
				if err != nil {
					return 0, "", nil, err
				}
				about.Tools = append(about.Tools, converted)
			}
			return len(page.Tools), page.NextCursor, page, nil
		})
	}
	if err == nil && offers.Resources != nil {
		err = pages("resources", func(cursor string) (int, string, any, error) {
			page, err := s.client.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return 0, "", nil, err
			}
			for _, r := range page.Resources {
				if r == nil {
					return 0, "", nil, errors.New("one of them is null")
				}
				about.Resources = append(about.Resources, Resource{r.URI, r.Name, r.Description, r.MIMEType})
			}
			return len(page.Resources), page.NextCursor, page, nil
		})
	}
	return about, err
}

// pages reads all pages of a list. read returns how many entries a page has, the cursor of the next, and the page.
func pages(what string, read func(cursor string) (n int, next string, page any, err error)) error {
	seen := map[string]bool{}
	cursor, entries, size := "", 0, 0
	for {
		n, next, page, err := read(cursor)
		if err != nil {
			return fmt.Errorf("list %s: %w", what, err)
		}
		data, err := json.Marshal(page)
		if err != nil {
			return fmt.Errorf("list %s: %w", what, err)
		}
		entries, size = entries+n, size+len(data)
		switch {
		case len(seen) >= maxPages || entries > maxListed || size > maxListBytes:
			return fmt.Errorf("list %s: there are more than %d pages, %d entries or %d MiB of them", what, maxPages, maxListed,
				maxListBytes>>20)
		case next == "":
			return nil
		case seen[next]:
			return fmt.Errorf("list %s: the cursor of page %d is one of before: the list has no end", what, len(seen)+2)
		}
		seen[next], cursor = true, next
	}
}

// schemaKeys are the keys of a JSON Schema in the order in which people write them, which is that of chat templates
// and of what models are trained on. Others follow in the order of the alphabet.
var schemaKeys = []string{"type", "description", "enum", "items", "properties", "required"}

// silent tells whether a key of a schema says nothing to a model.
func silent(key string, value any) bool {
	_, isBool := value.(bool)
	return key == "$schema" || key == "$id" || key == "title" || key == "additionalProperties" && isBool
}

// orderedSchema writes the schema of a tool's arguments with its keys in the usual order; properties are in the order
// of the list of required ones, then of the alphabet. It is the same text in every process.
func orderedSchema(schema json.RawMessage) (json.RawMessage, error) {
	var object map[string]any
	if err := json.Unmarshal(schema, &object); err != nil || object == nil {
		return nil, fmt.Errorf("it is no JSON object: %.100s", schema)
	}
	if kind := object["type"]; kind != nil && kind != "object" {
		return nil, fmt.Errorf("its type is %v, want object", kind)
	}
	var b bytes.Buffer
	err := writeSchema(&b, object, 0)
	return b.Bytes(), err
}

const maxDepth = 64

// writeSchema writes a value of a schema: an object is a schema itself.
func writeSchema(b *bytes.Buffer, value any, depth int) error {
	if depth > maxDepth {
		return errors.New("it is nested too deep")
	}
	switch v := value.(type) {
	case map[string]any:
		keys := slices.DeleteFunc(keysInOrder(v, schemaKeys), func(key string) bool { return silent(key, v[key]) })
		return writeObject(b, v, keys, depth)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeSchema(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	text, err := json.Marshal(value)
	b.Write(text)
	return err
}

func writeObject(b *bytes.Buffer, object map[string]any, keys []string, depth int) error {
	b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		b.Write(name)
		b.WriteString(": ")
		properties, ok := object[key].(map[string]any)
		if key == "properties" && ok {
			err = writeObject(b, properties, keysInOrder(properties, required(object)), depth+1)
		} else {
			err = writeSchema(b, object[key], depth+1)
		}
		if err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// keysInOrder returns the keys of an object: the given ones first, then the others in the order of the alphabet.
func keysInOrder(object map[string]any, first []string) []string {
	var keys []string
	for _, key := range first {
		if _, ok := object[key]; ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func required(schema map[string]any) []string {
	list, _ := schema["required"].([]any)
	var names []string
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
