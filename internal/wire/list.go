package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
)

func decodeMessages(ctx context.Context, p *problemList, data json.RawMessage) ([]art.Message, error) {
	return decodeList(ctx, p, "messages", data, func(p *problemList, path string, raw []byte, m *art.Message) {
		if !checkParts(p, path, raw) {
			return
		}
		if err := json.Unmarshal(raw, m); err != nil {
			p.require(false, path, "is wrong: %v", err)
			return
		}
		readReasoning(m, raw)
		p.require(slices.Contains(roles, m.Role), path+".role", "is %s: it must be one of %q", Quote(m.Role), roles)
	})
}

func decodeTools(ctx context.Context, p *problemList, data json.RawMessage) ([]art.Tool, error) {
	return decodeList(ctx, p, "tools", data, func(p *problemList, path string, raw []byte, t *art.Tool) {
		if !checkToolType(p, path, raw) {
			return
		}
		if err := json.Unmarshal(raw, t); err != nil {
			p.require(false, path, "is wrong: %v", err)
			return
		}
		p.require(t.Name != "", path+".function.name", "must not be empty")
	})
}

// decodeList decodes the elements of a list one at a time. Absent and null are an empty list. It stops early, with the
// error of ctx, when that is done, and without an error when the list of problems is full.
func decodeList[T any](
	ctx context.Context, p *problemList, field string, data json.RawMessage,
	decode func(p *problemList, path string, raw []byte, v *T),
) ([]T, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if data[0] != '[' {
		p.require(false, field, "must be a list")
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token() // the opening bracket
	var list []T
	var raw json.RawMessage // reused: a list of raw elements would be larger than the body
	for d.More() && !p.full() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		var v T
		decode(p, fmt.Sprintf("%s[%d]", field, len(list)), raw, &v)
		list = append(list, v)
	}
	return list, nil
}

// maxElements limits the parts and the tool calls of a message. Cancellation is checked between messages, so that no
// message may take long.
const maxElements = 1024

// checkParts finds content parts that are not text, which is all the model can read, and too many parts or tool calls.
// It reports whether to decode the message, which finds everything else that is wrong.
func checkParts(p *problemList, path string, message []byte) bool {
	var read struct {
		Content   json.RawMessage `json:"content"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	var parts []struct {
		Type string `json:"type"`
	}
	var calls []struct{}
	if json.Unmarshal(message, &read) != nil {
		return true
	}
	_ = json.Unmarshal(read.Content, &parts) // fails for a string, which has no parts
	_ = json.Unmarshal(read.ToolCalls, &calls)
	p.require(len(parts) <= maxElements, path+".content", "has %d parts; at most %d are supported",
		len(parts), maxElements)
	p.require(len(calls) <= maxElements, path+".tool_calls", "has %d calls; at most %d are supported",
		len(calls), maxElements)
	for i, part := range parts[:min(len(parts), maxElements)] {
		isText := part.Type == "text" || part.Type == "refusal"
		p.require(isText, fmt.Sprintf("%s.content[%d]", path, i), "is of type %s: only text is supported", Quote(part.Type))
	}
	return len(parts) <= maxElements && len(calls) <= maxElements
}

// checkToolType refuses tools that are not functions, such as custom tools and those that OpenAI runs itself. It
// reports whether to decode the tool, which finds values that are not objects.
func checkToolType(p *problemList, path string, tool []byte) bool {
	var read struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(tool, &read) != nil {
		return true
	}
	isFunction := read.Type == "function"
	p.require(isFunction, path+".type", "is %s: only \"function\" is supported", Quote(read.Type))
	return isFunction
}
