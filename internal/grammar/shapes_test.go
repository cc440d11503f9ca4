package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// shape is a schema with a writer of documents that satisfy it, in the spelling that SingleSpaces asks for.
type shape struct {
	schema string
	write  func(rng *rand.Rand, depth int) string
}

// randomShape returns a schema of bounded depth.
func randomShape(rng *rand.Rand, depth int) shape {
	leaves := []func(*rand.Rand) shape{
		constantShape, integerShape, numberShape, stringShape, enumShape, patternShape, anyShape,
	}
	if depth == 0 || rng.IntN(3) == 0 {
		return leaves[rng.IntN(len(leaves))](rng)
	}
	switch rng.IntN(5) {
	case 0:
		return arrayShape(rng, depth-1)
	case 1:
		return tupleShape(rng, depth-1)
	case 2:
		return unionShape(rng, depth-1)
	default:
		return objectShape(rng, depth-1)
	}
}

func fixed(schema string, texts ...string) shape {
	return shape{schema, func(rng *rand.Rand, _ int) string { return texts[rng.IntN(len(texts))] }}
}

func constantShape(rng *rand.Rand) shape {
	return []shape{
		fixed(`{"type":"null"}`, "null"),
		fixed(`{"type":"boolean","description":"b"}`, "true", "false"),
		fixed(`{"const":{"a":[1,"x"],"b":2.50}}`, `{"a": [1, "x"], "b": 2.50}`),
		fixed(`{"type":["null","boolean"]}`, "null", "true"),
	}[rng.IntN(4)]
}

func integerShape(rng *rand.Rand) shape {
	low := rng.IntN(300) - 150
	high := low + rng.IntN(200)
	if rng.IntN(4) == 0 {
		return shape{`{"type":"integer"}`, func(rng *rand.Rand, _ int) string { return strconv.Itoa(rng.IntN(2000) - 1000) }}
	}
	return shape{
		fmt.Sprintf(`{"type":"integer","minimum":%d,"exclusiveMaximum":%d}`, low, high+1),
		func(rng *rand.Rand, _ int) string { return strconv.Itoa(low + rng.IntN(high-low+1)) },
	}
}

func numberShape(rng *rand.Rand) shape {
	low := rng.IntN(4000) - 2000
	high := low + 1 + rng.IntN(3000)
	if rng.IntN(4) == 0 {
		return fixed(`{"type":"number"}`, "0", "-0", "12.5", "1e5", "-2.5E-10", "100000000000000000")
	}
	return shape{
		fmt.Sprintf(`{"type":"number","exclusiveMinimum":%g,"maximum":%g}`, float64(low)/100, float64(high)/100),
		func(rng *rand.Rand, _ int) string {
			return strconv.FormatFloat(float64(low+1+rng.IntN(high-low))/100, 'f', -1, 64)
		},
	}
}

var someRunes = []rune(`abz09 "\/,:{}[]é世界😀` + "\n\t\b\x01\x7f\u2028")

// randomText returns a text of characters that matter.
func randomText(rng *rand.Rand, n int) string {
	var out strings.Builder
	for range n {
		out.WriteRune(someRunes[rng.IntN(len(someRunes))])
	}
	return out.String()
}

func stringShape(rng *rand.Rand) shape {
	low := rng.IntN(4)
	high := low + rng.IntN(40)
	schema := fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, low, high)
	if rng.IntN(2) == 0 {
		low, high, schema = 0, 30, `{"type":"string"}`
	}
	return shape{schema, func(rng *rand.Rand, _ int) string {
		return escapeSome(randomText(rng, low+rng.IntN(high-low+1)), rng)
	}}
}

// escapeSome is quoteJSON with escapes that are not needed.
func escapeSome(text string, rng *rand.Rand) string {
	var out strings.Builder
	for _, r := range text {
		switch {
		case rng.IntN(8) > 0:
			out.WriteString(escapeRune(r))
		case r > 0xFFFF:
			fmt.Fprintf(&out, `\u%04X\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		default:
			fmt.Fprintf(&out, `\u%04X`, r)
		}
	}
	return `"` + out.String() + `"`
}

func patternShape(rng *rand.Rand) shape {
	return []shape{
		fixed(`{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`, `"AB-1"`, `"ZZ-00123"`),
		fixed(`{"type":"string","pattern":"[\"é]\\n","maxLength":4}`, `"a\"\n"`, `"\u000Aé\nz"`),
		fixed(`{"type":"string","format":"date"}`, `"2024-02-29"`, `"1999-12-31"`),
		fixed(`{"type":"string","format":"uuid"}`, `"123e4567-e89b-12d3-a456-426614174000"`),
	}[rng.IntN(4)]
}

func anyShape(rng *rand.Rand) shape {
	schema := []string{"true", "{}", `{"title":"t","x-order":1}`}[rng.IntN(3)]
	return shape{schema, writeAny}
}

// writeAny writes any JSON value.
func writeAny(rng *rand.Rand, depth int) string {
	n := 4
	if depth > 0 {
		n = 6
	}
	switch rng.IntN(n) {
	case 0:
		return "null"
	case 1:
		return "false"
	case 2:
		return strconv.FormatFloat(rng.NormFloat64()*1000, 'g', 6, 64)
	case 3:
		return escapeSome(randomText(rng, rng.IntN(8)), rng)
	case 4:
		var parts []string
		for range rng.IntN(4) {
			parts = append(parts, writeAny(rng, depth-1))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var parts []string
	for i := range rng.IntN(4) {
		parts = append(parts, quoteJSON(randomText(rng, 3)+strconv.Itoa(i))+": "+writeAny(rng, depth-1))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func enumShape(rng *rand.Rand) shape {
	schema := `{"enum":["a","ab","\"é\\",1,-2.5,1e2,null,true,[1,{"b":[]}]]}`
	texts := []string{`"a"`, `"ab"`, `"\"é\\"`, "1", "-2.5", "100", "null", "true", `[1, {"b": []}]`}
	if rng.IntN(2) == 0 {
		return fixed(schema[:len(schema)-1]+`,"type":["string","integer"],"maxLength":1,"minimum":50}`, texts[0], texts[5])
	}
	return fixed(schema, texts...)
}

func arrayShape(rng *rand.Rand, depth int) shape {
	item, low := randomShape(rng, depth), rng.IntN(3)
	high := low + rng.IntN(4)
	schema := fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, item.schema, low, high)
	if rng.IntN(3) == 0 {
		schema = fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d}`, item.schema, low)
	}
	return shape{schema, func(rng *rand.Rand, depth int) string {
		parts := make([]string, low+rng.IntN(high-low+1))
		for i := range parts {
			parts[i] = item.write(rng, depth-1)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}}
}

func tupleShape(rng *rand.Rand, depth int) shape {
	first, second, rest := randomShape(rng, depth), randomShape(rng, depth), randomShape(rng, depth)
	schema := fmt.Sprintf(`{"type":"array","prefixItems":[%s,%s],"items":%s}`, first.schema, second.schema, rest.schema)
	return shape{schema, func(rng *rand.Rand, depth int) string {
		all := []string{
			first.write(rng, depth-1), second.write(rng, depth-1), rest.write(rng, depth-1), rest.write(rng, depth-1),
		}
		return "[" + strings.Join(all[:rng.IntN(5)], ", ") + "]"
	}}
}

// unionShape has alternatives, one of them null. With allOf around, it is a conjunction.
func unionShape(rng *rand.Rand, depth int) shape {
	other := randomShape(rng, depth)
	schema := fmt.Sprintf(`{"anyOf":[{"type":"null"},%s]}`, other.schema)
	if rng.IntN(2) == 0 {
		schema = fmt.Sprintf(`{"allOf":[true,%s,{"anyOf":[{"type":"array"},%s]}]}`, schema, schema)
	}
	return shape{schema, func(rng *rand.Rand, depth int) string {
		if rng.IntN(4) == 0 {
			return "null"
		}
		return other.write(rng, depth-1)
	}}
}

// objectShape may refer to itself, and may be two schemas that hold together.
func objectShape(rng *rand.Rand, depth int) shape {
	names := []string{"a", "ab", "b", `q"`, "é", "世", "", "next"}
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:rng.IntN(len(names))]
	shapes := make([]shape, len(names))
	required := make([]bool, len(names))
	var properties, must []string
	for i, name := range names {
		shapes[i] = randomShape(rng, depth)
		properties = append(properties, quoteJSON(name)+":"+shapes[i].schema)
		if required[i] = rng.IntN(2) == 0; required[i] {
			must = append(must, quoteJSON(name))
		}
	}
	additional := []string{"", `,"additionalProperties":false`, `,"additionalProperties":{"type":"integer"}`}[rng.IntN(3)]
	list := "[" + strings.Join(must, ",") + "]"
	schema := fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s%s}`,
		strings.Join(properties, ","), list, additional)
	if rng.IntN(4) == 0 {
		schema = fmt.Sprintf(`{"properties":{%s},"allOf":[{"required":%s}]%s}`,
			strings.Join(properties, ","), list, additional)
	}
	return shape{schema, func(rng *rand.Rand, depth int) string {
		var parts []string
		for i, name := range names {
			if required[i] || rng.IntN(2) == 0 {
				parts = append(parts, quoteJSON(name)+": "+shapes[i].write(rng, depth-1))
			}
		}
		for i := range rng.IntN(3) {
			key := randomText(rng, 1) + strconv.Itoa(i)
			if !slices.Contains(names, key) && !strings.Contains(additional, "false") {
				parts = append(parts, quoteJSON(key)+": "+strconv.Itoa(i))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}}
}

// treeShape wraps a schema in a recursive one.
func treeShape(inner shape) shape {
	schema := fmt.Sprintf(`{"$defs":{"tree":{"type":"object","properties":{"value":%s,`+
		`"left":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},"right":{"$ref":"#/$defs/tree"}},"required":["value","left"],"additionalProperties":false}},`+
		`"$ref":"#/$defs/tree"}`, inner.schema)
	var write func(rng *rand.Rand, depth int) string
	write = func(rng *rand.Rand, depth int) string {
		left, right := "null", ""
		if depth > 0 && rng.IntN(2) == 0 {
			left = write(rng, depth-1)
		}
		if depth > 0 && rng.IntN(2) == 0 {
			right = `, "right": ` + write(rng, depth-1)
		}
		return `{"value": ` + inner.write(rng, depth-1) + `, "left": ` + left + right + "}"
	}
	return shape{schema, write}
}
