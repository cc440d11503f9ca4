package grammar

import (
	"encoding/json"
	"strings"
)

// spell returns the spelling of a value of enum or const: its members in their order, numbers that are whole without a
// fraction or exponent.
func spell(raw json.RawMessage, ws Whitespace) (string, error) {
	switch kind(raw) {
	case '{':
		return spellObject(raw, ws)
	case '[':
		items, err := elements(raw)
		if err != nil {
			return "", err
		}
		parts := make([]string, len(items))
		for i, item := range items {
			if parts[i], err = spell(item, ws); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(parts, ws.separator(",")) + "]", nil
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return quoteJSON(text), err
	case 't', 'f', 'n':
		return strings.TrimSpace(string(raw)), nil
	}
	value, err := decimal(raw)
	if err != nil || !value.IsInt() {
		return strings.TrimSpace(string(raw)), err
	}
	return value.Num().String(), nil
}

func spellObject(raw json.RawMessage, ws Whitespace) (string, error) {
	all, err := members(raw)
	if err != nil {
		return "", err
	}
	parts := make([]string, len(all))
	for i, m := range all {
		value, err := spell(m.value, ws)
		if err != nil {
			return "", err
		}
		parts[i] = quoteJSON(m.key) + ws.separator(":") + value
	}
	return "{" + strings.Join(parts, ws.separator(",")) + "}", nil
}

// separator returns a comma or colon with the fixed whitespace that a policy puts after it.
func (w Whitespace) separator(text string) string {
	if w == SingleSpaces {
		return text + " "
	}
	return text
}

// commonValues returns the values of a that are in b, in the order of a.
func commonValues(a, b []json.RawMessage) []json.RawMessage {
	in := map[string]bool{}
	for _, raw := range b {
		in[mustSpell(raw)] = true
	}
	var out []json.RawMessage
	for _, raw := range a {
		if in[mustSpell(raw)] {
			out = append(out, raw)
		}
	}
	return out
}

// mustSpell is spell for values that readValues has checked.
func mustSpell(raw json.RawMessage) string {
	text, err := spell(raw, NoSpaces)
	if err != nil {
		panic(err)
	}
	return text
}

// typeOf returns the type of a value.
func typeOf(raw json.RawMessage) typeSet {
	switch kind(raw) {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if value, err := decimal(raw); err == nil && value.IsInt() {
		return typeInteger
	}
	return typeFraction
}

// spelled is the spellings of a value under a whitespace policy.
func spelled(raw json.RawMessage, ws Whitespace) fragment {
	switch kind(raw) {
	case '[':
		items, _ := elements(raw) // readValues has checked it
		parts := make([]fragment, len(items))
		for i, item := range items {
			parts[i] = spelled(item, ws)
		}
		return bracketed(ws, "[", parts, "]")
	case '{':
		all, _ := members(raw)
		parts := make([]fragment, len(all))
		for i, m := range all {
			parts[i] = sequence(literal(quoteJSON(m.key)), ws.colon(), spelled(m.value, ws))
		}
		return bracketed(ws, "{", parts, "}")
	}
	return literal(mustSpell(raw))
}

// bracketed is elements between brackets.
func bracketed(ws Whitespace, open string, parts []fragment, end string) fragment {
	all := []fragment{literal(open), ws.bracket()}
	for i, part := range parts {
		if i > 0 {
			all = append(all, ws.comma())
		}
		all = append(all, part)
	}
	if len(parts) > 0 {
		all = append(all, ws.bracket())
	}
	return sequence(append(all, literal(end))...)
}
