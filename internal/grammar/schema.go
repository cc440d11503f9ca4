package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/jsonschema"
)

// schemaNode is one parsed schema.
type schemaNode struct {
	path   string
	ref    *schemaNode   // $ref
	all    []*schemaNode // allOf
	groups []*group      // anyOf, oneOf and nullable
	own    []*constraint // the other keywords; none if they allow everything
	never  bool          // the schema false
}

// group is alternatives, of which at least one holds.
type group struct {
	id       int
	branches []*schemaNode
}

// constraint is the keywords of one schema that constrain its value by themselves. Values of enum and const are a
// constraint apart.
type constraint struct {
	id        int
	path      string
	types     jsonschema.Types // 0 where no type is given
	implied   jsonschema.Types // types of the values that the other keywords constrain
	values    []json.RawMessage
	hasValues bool

	numbers numberBounds
	strings stringBounds
	object  *objectKeywords
	array   *arrayKeywords
}

// objectKeywords constrain objects.
type objectKeywords struct {
	names      []string // of properties, in their order
	properties map[string]*schemaNode
	required   []string
	additional *schemaNode // nil where it is absent
}

// arrayKeywords constrain arrays.
type arrayKeywords struct {
	prefix    []*schemaNode
	items     *schemaNode // nil where it is absent
	low, high int         // number of elements; high -1 is without bound
}

// schemaReader parses a schema document.
type schemaReader struct {
	root   json.RawMessage
	nodes  map[string]*schemaNode // by path
	lastID int
}

// failAt fails with an error at a place of a schema.
func failAt(path, format string, args ...any) {
	fail(fmt.Errorf("grammar: schema at #%s: %s", path, fmt.Sprintf(format, args...)))
}

// check fails at a place of a schema if there is an error.
func check(path string, err error) {
	if err != nil {
		failAt(path, "%v", err)
	}
}

func (r *schemaReader) nextID() int {
	r.lastID++
	return r.lastID
}

// node returns the schema at a path.
func (r *schemaReader) node(path string, raw json.RawMessage) *schemaNode {
	if node, ok := r.nodes[path]; ok {
		return node
	}
	node := &schemaNode{path: path}
	r.nodes[path] = node
	switch kind(raw) {
	case 't':
		return node
	case 'f':
		node.never = true
		return node
	}
	keywords, err := members(raw)
	if err != nil {
		failAt(path, "a schema must be an object or a boolean: %v", err)
	}
	own := &constraint{id: r.nextID(), path: node.path, strings: stringBounds{high: -1}}
	values := &constraint{id: r.nextID(), path: node.path}
	nullable := false
	for _, m := range keywords {
		if m.key == "nullable" {
			if kind(m.value) == 'f' {
				continue
			}
			nullable = true
		}
		r.keyword(node, own, values, m)
	}
	if own.types != 0 || own.implied != 0 {
		node.own = append(node.own, own)
	}
	if values.hasValues {
		node.own = append(node.own, values)
	}
	if nullable { // null is allowed besides what the other keywords allow, as OpenAPI 3.0 has it
		inner := *node
		null := &schemaNode{path: node.path, own: []*constraint{{id: r.nextID(), path: node.path, types: jsonschema.Null}}}
		*node = schemaNode{path: node.path, groups: []*group{{r.nextID(), []*schemaNode{&inner, null}}}}
	}
	return node
}

// annotations are keywords that constrain nothing. A discriminator names a property that the alternatives constrain.
var annotations = []string{
	"$schema", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "example", "deprecated",
	"readOnly", "writeOnly", "discriminator", "contentEncoding", "contentMediaType",
}

// neutral are keywords that are supported with the value that constrains nothing.
var neutral = map[string]string{"uniqueItems": "false", "minProperties": "0", "nullable": "true"}

// keyword parses one keyword.
func (r *schemaReader) keyword(node *schemaNode, own, values *constraint, m member) {
	path := node.path + "/" + escapePointer(m.key)
	for _, read := range []func(*schemaNode, *constraint, member, string) bool{
		r.combinator, r.typeKeyword, r.stringKeyword, r.numberKeyword, r.objectKeyword, r.arrayKeyword,
	} {
		if read(node, own, m, path) {
			return
		}
	}
	switch value := strings.TrimSpace(string(m.value)); {
	case m.key == "enum", m.key == "const":
		readValues(values, m, path)
	case m.key == "$id" && node.path == "":
	case slices.Contains(annotations, m.key), strings.HasPrefix(m.key, "x-"), neutral[m.key] == value && value != "":
	default:
		failAt(path, "the keyword %s with this value is not supported", m.key)
	}
}

// combinator parses the keywords that hold for any type.
func (r *schemaReader) combinator(node *schemaNode, _ *constraint, m member, path string) bool {
	switch m.key {
	case "$ref":
		node.ref = r.reference(m.value, path)
	case "anyOf", "oneOf", "allOf":
		list := r.list(m.value, path)
		if len(list) == 0 {
			failAt(path, "must have an element")
		}
		if m.key == "allOf" {
			node.all = list
		} else {
			node.groups = append(node.groups, &group{r.nextID(), list})
		}
	default:
		return false
	}
	return true
}

// list parses an array of schemas.
func (r *schemaReader) list(raw json.RawMessage, path string) []*schemaNode {
	items, err := elements(raw)
	check(path, err)
	nodes := make([]*schemaNode, len(items))
	for i, item := range items {
		nodes[i] = r.node(path+"/"+strconv.Itoa(i), item)
	}
	return nodes
}

// reference resolves a $ref within the document.
func (r *schemaReader) reference(raw json.RawMessage, path string) *schemaNode {
	var ref string
	if err := json.Unmarshal(raw, &ref); err != nil {
		failAt(path, "must be a string")
	}
	names, err := jsonschema.ParseRef(ref)
	check(path, err)
	target, at := r.root, ""
	for _, name := range names {
		if target = child(target, name); target == nil {
			failAt(path, "%q does not exist", ref)
		}
		at += "/" + escapePointer(name)
	}
	return r.node(at, target)
}

// child returns a member or element of a JSON value, or nil.
func child(raw json.RawMessage, name string) json.RawMessage {
	if kind(raw) == '[' {
		items, err := elements(raw)
		if i, bad := strconv.Atoi(name); err == nil && bad == nil && 0 <= i && i < len(items) {
			return items[i]
		}
		return nil
	}
	all, _ := members(raw) // none if it is not an object
	for _, m := range all {
		if m.key == name {
			return m.value
		}
	}
	return nil
}

// escapePointer writes a name in a JSON pointer.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// member is a member of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of a JSON object in their order. A repeated key is an error.
func members(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("must be an object")
	}
	var out []member
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: key.(string)}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		if seen[m.key] {
			return nil, fmt.Errorf("has the key %q twice", m.key)
		}
		seen[m.key] = true
		out = append(out, m)
	}
	return out, nil
}

// elements returns the elements of a JSON array.
func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if kind(raw) != '[' || json.Unmarshal(raw, &out) != nil {
		return nil, errors.New("must be an array")
	}
	return out, nil
}

// kind returns the first byte of a JSON value, which tells its type.
func kind(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

// nesting returns how deep the brackets of a JSON document are nested.
func nesting(raw json.RawMessage) (int, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	depth, deepest := 0, 0
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return deepest, nil
		}
		if err != nil {
			return 0, err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}
