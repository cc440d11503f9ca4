package grammar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/jsonpointer"
)

// typeSet is a set of JSON types. A number is an integer or a fraction, so that "integer" is a part of "number".
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction
	typeString
	typeArray
	typeObject
	typeNumber = typeInteger | typeFraction
	typeAny    = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

var typeNames = map[string]typeSet{
	"null": typeNull, "boolean": typeBoolean, "integer": typeInteger, "number": typeNumber, "string": typeString,
	"array": typeArray, "object": typeObject,
}

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
	types     typeSet // 0 where no type is given
	implied   typeSet // types of the values that the other keywords constrain
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

// schemaError is an error at a place of a schema.
func schemaError(path, format string, args ...any) error {
	return fmt.Errorf("grammar: schema at #%s: %s", path, fmt.Sprintf(format, args...))
}

func (r *schemaReader) nextID() int {
	r.lastID++
	return r.lastID
}

// node returns the schema at a path.
func (r *schemaReader) node(path string, raw json.RawMessage) (*schemaNode, error) {
	if node, ok := r.nodes[path]; ok {
		return node, nil
	}
	node := &schemaNode{path: path}
	r.nodes[path] = node
	switch kind(raw) {
	case 't':
		return node, nil
	case 'f':
		node.never = true
		return node, nil
	}
	keywords, err := members(raw)
	if err != nil {
		return nil, schemaError(path, "a schema must be an object or a boolean: %v", err)
	}
	return node, r.fill(node, keywords)
}

// fill sets the parts of a node.
func (r *schemaReader) fill(node *schemaNode, keywords []member) error {
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
		if err := r.keyword(node, own, values, m); err != nil {
			return err
		}
	}
	if own.types != 0 || own.implied != 0 {
		node.own = append(node.own, own)
	}
	if values.hasValues {
		node.own = append(node.own, values)
	}
	if nullable {
		r.makeNullable(node)
	}
	return nil
}

// makeNullable makes a node allow null besides what it allows by its other keywords, as OpenAPI 3.0 has it.
func (r *schemaReader) makeNullable(node *schemaNode) {
	inner := *node
	null := &schemaNode{path: node.path, own: []*constraint{{id: r.nextID(), path: node.path, types: typeNull}}}
	*node = schemaNode{path: node.path, groups: []*group{{r.nextID(), []*schemaNode{&inner, null}}}}
}

// annotations are keywords that constrain nothing. A discriminator names a property that the alternatives constrain.
var annotations = []string{
	"$schema", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "example", "deprecated",
	"readOnly", "writeOnly", "discriminator", "contentEncoding", "contentMediaType",
}

// neutral are keywords that are supported with the value that constrains nothing.
var neutral = map[string]string{"uniqueItems": "false", "minProperties": "0", "nullable": "true"}

// keyword parses one keyword.
func (r *schemaReader) keyword(node *schemaNode, own, values *constraint, m member) error {
	path := node.path + "/" + escapePointer(m.key)
	for _, read := range []func(*schemaNode, *constraint, member, string) (bool, error){
		r.combinator, r.typeKeyword, r.stringKeyword, r.numberKeyword, r.objectKeyword, r.arrayKeyword,
	} {
		if known, err := read(node, own, m, path); known || err != nil {
			return err
		}
	}
	switch value := strings.TrimSpace(string(m.value)); {
	case m.key == "enum", m.key == "const":
		return readValues(values, m, path)
	case m.key == "$id" && node.path == "":
	case slices.Contains(annotations, m.key), strings.HasPrefix(m.key, "x-"), neutral[m.key] == value && value != "":
	default:
		return schemaError(path, "the keyword %s with this value is not supported", m.key)
	}
	return nil
}

// combinator parses the keywords that hold for any type.
func (r *schemaReader) combinator(node *schemaNode, _ *constraint, m member, path string) (bool, error) {
	switch m.key {
	case "$ref":
		target, err := r.reference(m.value, path)
		node.ref = target
		return true, err
	case "anyOf", "oneOf", "allOf":
		list, err := r.list(m.value, path)
		if err == nil && len(list) == 0 {
			err = schemaError(path, "must have an element")
		}
		if m.key == "allOf" {
			node.all = list
		} else {
			node.groups = append(node.groups, &group{r.nextID(), list})
		}
		return true, err
	}
	return false, nil
}

// list parses an array of schemas.
func (r *schemaReader) list(raw json.RawMessage, path string) ([]*schemaNode, error) {
	items, err := elements(raw)
	if err != nil {
		return nil, schemaError(path, "%v", err)
	}
	nodes := make([]*schemaNode, len(items))
	for i, item := range items {
		if nodes[i], err = r.node(path+"/"+strconv.Itoa(i), item); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// reference resolves a $ref within the document.
func (r *schemaReader) reference(raw json.RawMessage, path string) (*schemaNode, error) {
	var ref string
	if err := json.Unmarshal(raw, &ref); err != nil {
		return nil, schemaError(path, "must be a string")
	}
	names, err := jsonpointer.Parse(ref)
	if err != nil {
		return nil, schemaError(path, "%v", err)
	}
	target, at := r.root, ""
	for _, name := range names {
		if target = child(target, name); target == nil {
			return nil, schemaError(path, "%q does not exist", ref)
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
	all, err := members(raw)
	if err != nil {
		return nil
	}
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
