package chat

import "strings"

// valueTags tell where the value of an argument ends: at its end tag or, because models forget that one, at a tag that
// cannot be part of the value.
type valueTags struct {
	end string
	// argument returns the tag of an argument. A value ends before the tag of one that the tool has and that the call has
	// nowhere else: then it is no text that mentions the tag.
	argument func(name string) string
	// call ends a call: a value ends before it if the section does, or if next, the tag of another call, follows. Where
	// call is "", the section has one call, and a value ends with it.
	call, next string
}

// cut returns the value that a text begins with, and what follows it. given tells which arguments the call has so far,
// with that of the value. forgotten says that the end tag is missing; ok is false if nothing tells where the value
// ends.
func (t valueTags) cut(
	text string, schema *argumentSchema, given func(name string) bool,
) (value, rest string, forgotten, ok bool) {
	value, rest, ok = strings.Cut(text, t.end)
	if at := min(t.callEnd(text, len(value)), t.argumentStart(text, len(value), schema, given)); at < len(value) {
		return text[:at], text[at:], true, true
	}
	return value, rest, !ok, ok || t.call == ""
}

// callEnd returns where a call ends within the first n bytes of a text; n if it does not.
func (t valueTags) callEnd(text string, n int) int {
	for from := 0; t.call != ""; {
		at := strings.Index(text[from:n], t.call)
		if at < 0 {
			break
		}
		at, from = from+at, from+at+len(t.call)
		after := strings.TrimLeft(text[from:], " \t\r\n")
		if after == "" || strings.HasPrefix(after, t.next) {
			return at
		}
	}
	return n
}

// argumentStart returns where the first of the other arguments begins within the first n bytes of a text; n if none
// does.
func (t valueTags) argumentStart(text string, n int, schema *argumentSchema, given func(name string) bool) int {
	first := n
	for _, name := range schema.names {
		if given(name) {
			continue
		}
		tag := t.argument(name)
		at := strings.Index(text[:n], tag)
		if at < 0 || at >= first {
			continue
		}
		call := text
		if t.call != "" {
			call, _, _ = strings.Cut(text, t.call)
		}
		if strings.Count(call, tag) == 1 {
			first = at
		}
	}
	return first
}
