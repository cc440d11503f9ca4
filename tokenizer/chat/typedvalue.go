package chat

import (
	"encoding/json"
	"io"
	"math/big"
	"strings"
)

// typed writes the text of an argument as JSON: formats whose arguments are in tags write strings as they are, and
// everything else as JSON or as Python prints it. The schema tells which one a text is:
//
//   - A text that is JSON or a Python literal, and of a type that the schema allows, is that value: 5, null or None,
//     true or True, [1, 2], {"a": 1}. So for a string or an integer, 5 is a number and "five" a string, as in vLLM
//     (coerce_to_schema_type); if strings came first, as in SGLang, the other types could never be written.
//   - A whole number such as 3.0 is an integer, as JSON Schema has it, and written as one.
//   - Where the schema allows only strings, or says nothing of the type, every text is a string: 5, null and "a" with
//     its quotes too.
//   - Of an enum or a const, only the members count: of "1" and "2", the text 1 is a string.
//   - Everything else is passed on as a string, for example 2026-01-15 as an integer: the tool refuses it, and its
//     error tells the model more than the loss of the call would.
//
// anyOf and oneOf allow what one of their parts does, allOf and a $ref with keywords beside it what all of them do.
func (s *argumentSchema) typed(name, text string) string {
	allowed := s.types(name)
	if allowed.of()&^typeString == 0 {
		return quote(text)
	}
	literal, of := readLiteral(text)
	if of == typeInteger && allowed.types&typeFraction == 0 {
		literal = wholeNumber(literal)
	}
	switch {
	case of == 0:
		return quote(text)
	case allowed.types&of != 0, allowed.has(literal, of):
		return literal
	case allowed.any, allowed.types&typeString != 0, allowed.has(quote(text), typeString):
		return quote(text)
	case allowed.of()&of != 0: // it is none of the values of an enum, but of their type
		return literal
	}
	return quote(text)
}

// has reports whether a value is one that an enum or a const lists.
func (v valueTypes) has(text string, of typeSet) bool {
	if len(v.values) == 0 {
		return false
	}
	if of != typeString {
		value, ok := decodeNumbers(text)
		if !ok {
			return false
		}
		text, of = canonical(value)
	}
	return v.values[text]&of != 0
}

// readLiteral reads a text that is one value, JSON or a Python literal, and returns it as JSON with its type: 0 if it
// is none, or a string.
func readLiteral(text string) (literal string, of typeSet) {
	literal = strings.TrimSpace(text)
	for _, word := range []string{"true", "false"} {
		if strings.EqualFold(literal, word) {
			literal = word
		}
	}
	if literal = valueOrText(literal); jsonType(literal) == typeString {
		return "", 0
	}
	return literal, jsonType(literal)
}

// valueOrText writes a text that is JSON or a Python literal as JSON, and any other as a string.
func valueOrText(text string) string {
	if plain := strings.TrimSpace(text); json.Valid([]byte(plain)) {
		return plain
	}
	if value, ok := pythonValue(text); ok {
		return value
	}
	return quote(text)
}

// jsonType returns the type of a JSON text.
func jsonType(text string) typeSet {
	switch text[0] {
	case '"':
		return typeString
	case '{':
		return typeObject
	case '[':
		return typeArray
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if wholeNumber(text) != "" {
		return typeInteger
	}
	return typeFraction
}

func isDigits(number string) bool { return !strings.ContainsAny(number, ".eE") }

// maxNumber bounds how long a number is, in characters, whose fraction and exponent are computed.
const maxNumber = 40

// wholeNumber returns the digits of a JSON number that is an integer, such as 3.0 or 1e3, and "" for any other.
func wholeNumber(number string) string {
	if isDigits(number) {
		return number
	}
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	if len(number) > maxNumber || len(strings.Trim(exponent, "+-")) > 2 {
		return ""
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok || !value.IsInt() {
		return ""
	}
	return value.Num().String()
}

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	return json.Valid([]byte(text)) && jsonType(strings.TrimSpace(text))&(typeInteger|typeFraction) != 0
}

// decodeNumbers decodes JSON, and keeps numbers as they are written.
func decodeNumbers(text string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}

// quote writes a JSON string as Python does: it escapes only what must be escaped.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // strings can always be encoded
		panic("chat: " + err.Error())
	}
	plain := strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")
	return plain.Replace(strings.TrimSuffix(b.String(), "\n"))
}
