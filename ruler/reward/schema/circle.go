package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkRefs returns an error for a schema with references that lead out of it, and for one whose references run in a
// circle without going into the value, {"$ref": "#"}: to validate by it would never end.
func checkRefs(text json.RawMessage) error {
	g := refGraph{nodes: map[string]any{}, anchors: map[string]string{}, state: map[string]visit{}}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	g.add("", root)
	for _, path := range slices.Sorted(maps.Keys(g.nodes)) {
		if err := g.follow(path); err != nil {
			return err
		}
	}
	return nil
}

// visit is how far a node has been looked at.
type visit int

const (
	begun visit = iota + 1
	done
)

// refGraph are the values of a schema by their JSON pointers, and where their references lead.
type refGraph struct {
	nodes   map[string]any
	anchors map[string]string
	state   map[string]visit
}

// add adds a value, and what is in it.
func (g *refGraph) add(path string, v any) {
	g.nodes[path] = v
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			name, isText := child.(string)
			if isText && (key == "$anchor" || key == "$dynamicAnchor") {
				g.anchors[name] = path
			}
			g.add(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), child)
		}
	case []any:
		for i, child := range v {
			g.add(path+"/"+strconv.Itoa(i), child)
		}
	}
}

// follow goes through the schemas that apply to the same value as the one at path.
func (g *refGraph) follow(path string) error {
	switch g.state[path] {
	case done:
		return nil
	case begun:
		return fmt.Errorf("the references of #%s run in a circle", path)
	}
	g.state[path] = begun
	next, err := g.inPlace(path)
	if err != nil {
		return err
	}
	for _, other := range next {
		if err := g.follow(other); err != nil {
			return err
		}
	}
	g.state[path] = done
	return nil
}

// inPlace returns the schemas that the one at path applies to the value that it is applied to.
func (g *refGraph) inPlace(path string) ([]string, error) {
	s, ok := g.nodes[path].(map[string]any)
	if !ok {
		return nil, nil
	}
	var next []string
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := s[key].(string); ok {
			target, err := g.target(ref)
			if err != nil {
				return nil, err
			}
			next = append(next, target)
		}
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		next = append(next, path+"/"+key)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"} {
		prefix := path + "/" + key + "/"
		switch children := s[key].(type) {
		case []any:
			for i := range children {
				next = append(next, prefix+strconv.Itoa(i))
			}
		case map[string]any:
			for child := range children {
				next = append(next, prefix+strings.NewReplacer("~", "~0", "/", "~1").Replace(child))
			}
		}
	}
	return next, nil
}

// target returns where a reference leads.
func (g *refGraph) target(ref string) (string, error) {
	fragment, ok := strings.CutPrefix(ref, "#")
	path, err := url.PathUnescape(fragment)
	if !ok || err != nil {
		return "", fmt.Errorf("reference %q is not within the schema: write #, #/path or #anchor", ref)
	}
	if anchor, ok := g.anchors[path]; ok {
		return anchor, nil
	}
	return path, nil
}
