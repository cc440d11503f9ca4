package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
)

// decodeMessages decodes the field "messages".
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

// decodeTools decodes the field "tools".
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
