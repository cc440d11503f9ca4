// Package jsoncount counts what a JSON body has before it is decoded: 12 MB of "{}" decode to gigabytes of structs.
package jsoncount

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Limits bound the elements of the lists and objects of a body, by the keys under which these are. A key is the name of
// a member, or PARENT.NAME, which takes precedence over NAME. The case of letters does not matter, as in
// [encoding/json]. Each limit is for all lists of its key together.
type Limits struct {
	// Lists bound the elements of lists, of lists in them, and the members of objects that are decoded to maps.
	Lists map[string]int
	// Trees bound all values below a key, which are decoded without a type.
	Trees map[string]int
	// Other bounds the elements of all other lists.
	Other int
	// Members bounds the members of all objects that are not in Trees and not in the lists of Plain, as unknown members
	// may be kept. 0: they are not counted.
	Members int
	// Plain are keys of lists whose objects are decoded to structs that keep nothing else.
	Plain []string
}

// maxDepth bounds the nesting of a body.
const maxDepth = 256

// ExceededError says what a body has too much of.
type ExceededError struct {
	Key   string // "" for what has no limit of its own
	Limit int
}

// Error implements error.
func (e *ExceededError) Error() string {
	switch e.Key {
	case depthKey:
		return fmt.Sprintf("the body is nested more than %d levels deep", e.Limit)
	case membersKey:
		return fmt.Sprintf("the objects of the body have more than %d members; split the request", e.Limit)
	case "":
		return fmt.Sprintf("the lists of the body have more than %d elements; split the request", e.Limit)
	}
	return fmt.Sprintf("%q has more than %d elements in the body; split the request", e.Key, e.Limit)
}

// Keys of errors that are of no key.
const (
	depthKey   = "\x00depth"
	membersKey = "\x00members"
)

// Check returns an [ExceededError] if a body has too much. Whether it is JSON is found out by who decodes it. It takes
// no memory but for the nesting.
func (l *Limits) Check(body []byte) error {
	s := scan{body: body, counts: map[string][]*count{}, other: &count{limit: l.Other}, stack: []frame{{}}}
	if l.Members > 0 {
		s.members = &count{key: membersKey, limit: l.Members}
	}
	for key, limit := range l.Lists {
		s.add(key, limit, false)
	}
	for key, limit := range l.Trees {
		s.add(key, limit, true)
	}
	for _, list := range s.counts {
		for _, c := range list {
			c.plain = slices.Contains(l.Plain, c.key)
		}
	}
	for s.at < len(body) {
		if err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// count is of one limit.
type count struct {
	key, parent string // parent is "" for any
	n, limit    int
	tree, plain bool
}

// frame is a list or an object that is open.
type frame struct {
	list, tree bool
	key        []byte // of it, or of the list that it is in
	member     []byte // the key of the value that comes next, in an object
	named      bool   // the key of that value was read
	count      *count // nil: its elements are not counted
}

// scan is the state of a check.
type scan struct {
	body   []byte
	at     int
	stack  []frame
	counts map[string][]*count // by the last part of their keys, those with a parent first
	other  *count

	members *count // nil: they are not counted
}

func (s *scan) add(key string, limit int, tree bool) {
	c := &count{key: key, limit: limit, tree: tree}
	parent, name, found := strings.Cut(key, ".")
	if !found {
		s.counts[key] = append(s.counts[key], c)
		return
	}
	c.parent = parent
	s.counts[name] = append([]*count{c}, s.counts[name]...)
}

func (s *scan) next() error {
	top := &s.stack[len(s.stack)-1]
	switch c := s.body[s.at]; c {
	case ' ', '\t', '\n', '\r', ':':
	case ',':
		top.named = false
	case '}', ']':
		if len(s.stack) > 1 {
			s.stack = s.stack[:len(s.stack)-1]
		}
	case '{', '[':
		if err := top.value(); err != nil {
			return err
		}
		return s.open(top, c == '[')
	case '"':
		text := s.text()
		if !top.list && !top.named && len(s.stack) > 1 {
			top.named, top.member = true, text
			return nil
		}
		return top.value()
	default:
		s.skipWord()
		return top.value()
	}
	s.at++
	return nil
}

func (f *frame) value() error {
	if c := f.count; c != nil {
		if c.n++; c.n > c.limit {
			return &ExceededError{c.key, c.limit}
		}
	}
	return nil
}

func (s *scan) open(in *frame, list bool) error {
	s.at++
	if len(s.stack) > maxDepth {
		return &ExceededError{depthKey, maxDepth}
	}
	f := frame{list: list, tree: in.tree, count: in.count}
	switch {
	case in.tree:
	case in.list:
		f.key = in.key
		if !list {
			f.count = s.members
			if in.count != nil && in.count.plain {
				f.count = nil
			}
		}
	default:
		f.key = fold(in.member)
		f.count = s.of(in.key, f.key)
		f.tree = f.count != nil && f.count.tree
		switch {
		case f.count != nil:
		case list:
			f.count = s.other
		default:
			f.count = s.members
		}
	}
	s.stack = append(s.stack, f)
	return nil
}

// of returns the count of a key, nil if it has no limit.
func (s *scan) of(parent, name []byte) *count {
	for _, c := range s.counts[string(name)] {
		if c.parent == "" || c.parent == string(parent) {
			return c
		}
	}
	return nil
}

func (s *scan) skipWord() {
	for s.at++; s.at < len(s.body); s.at++ {
		switch s.body[s.at] {
		case ' ', '\t', '\n', '\r', ',', ':', '{', '}', '[', ']', '"':
			return
		}
	}
}

// text skips a string, and returns what is between its quotes.
func (s *scan) text() []byte {
	s.at++
	for from := s.at; s.at < len(s.body); s.at++ {
		switch s.body[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.body[from : s.at-1]
		}
	}
	return nil
}

// maxName is longer than any key that has a limit, with each letter as an escape.
const maxName = 6 * 64

// otherLetters are those that [encoding/json] takes for s and k.
var otherLetters = strings.NewReplacer("ſ", "s", "\u212a", "k")

// fold returns a key in lower case, as [encoding/json] would find its field.
func fold(key []byte) []byte {
	plain := !bytes.ContainsFunc(key, func(r rune) bool { return r == '\\' || r > '~' || 'A' <= r && r <= 'Z' })
	if plain {
		return key
	}
	var name string
	if len(key) > maxName || json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &name) != nil {
		return nil
	}
	return []byte(strings.ToLower(otherLetters.Replace(name)))
}
