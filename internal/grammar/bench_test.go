package grammar

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/goart-dev/art/tokenizer/openai"
)

// largeVocabulary is o200k: 200,019 ids.
var largeVocabulary = sync.OnceValue(func() *Vocabulary {
	tok, err := openai.Encoding(openai.O200K)
	if err != nil {
		panic(err)
	}
	tokens := make([][]byte, tok.VocabSize())
	for id := range tokens {
		if !tok.IsSpecial(int32(id)) {
			tokens[id] = tok.TokenBytes(int32(id))
		}
	}
	end, _ := tok.TokenID("<|endoftext|>")
	v, err := NewVocabulary(tokens, []int32{end})
	if err != nil {
		panic(err)
	}
	return v
})

// personSchema has the shapes of a usual tool call.
const personSchema = `{"type":"object","properties":{
	"name":{"type":"string"},"bio":{"type":"string","maxLength":2000},"age":{"type":"integer","minimum":0,"maximum":150},
	"email":{"type":"string","format":"email"},"tags":{"type":"array","items":{"type":"string"},"maxItems":20},
	"role":{"enum":["admin","editor","viewer"]},
	"address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"},
		"geo":{"type":"object","properties":{"lat":{"type":"number","minimum":-90,"maximum":90},"lon":{"type":"number"}},
			"required":["lat","lon"],"additionalProperties":false}},
		"required":["street","zip"],"additionalProperties":false},
	"extra":{}},"required":["name","bio","age","tags","role","address"],"additionalProperties":false}`

const personDocument = `{"name": "Ada Lovelace", "bio": "Wrote the first programme; translated \"Sketch of the ` +
	`Analytical Engine\" with notes – longer than the paper. Très connue, 世界.", "age": 36, "email": "ada@example.org", ` +
	`"tags": ["mathematics", "poetry"], "role": "admin", "address": {"street": "12 St James's Square", "zip": "10115", ` +
	`"geo": {"lat": 51.5072, "lon": -0.1276}}, "extra": {"a": [1, 2.5e3, null, {"b": "c"}]}}`

func benchmarkGrammars() map[string]struct {
	g    Grammar
	text string
} {
	return map[string]struct {
		g    Grammar
		text string
	}{
		"object": {JSONObject(nil), personDocument},
		"schema": {JSONSchema([]byte(personSchema), nil), personDocument},
		"regex":  {Regex(`(?:[A-Z][a-z]{2,10} ){3,8}[0-9]{4}-[0-9]{2}-[0-9]{2}`), "Hello There General Kenobi 2024-01-02"},
		"text":   {Sequence(Text("<tool_call>"), Literal("<tool_call>"), JSONObject(nil)), "Let me see.<tool_call>{}"},
	}
}

func BenchmarkCompile(b *testing.B) {
	v := largeVocabulary()
	for name, g := range benchmarkGrammars() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustCompile(b, g.g, v)
			}
		})
	}
}

func BenchmarkNewVocabulary(b *testing.B) {
	v := largeVocabulary()
	for b.Loop() {
		if _, err := NewVocabulary(v.tokens, v.end); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMask measures a step of a sequence, Mask and Accept: the first sequence of a compiled grammar, whose masks
// are computed, and later ones.
func BenchmarkMask(b *testing.B) {
	v := largeVocabulary()
	for name, g := range benchmarkGrammars() {
		ids := split(v, g.text, rand.New(rand.NewPCG(1, 1)), 0)
		dst := make([]uint32, v.MaskWords())
		b.Run(name+"/first", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				m := mustCompile(b, g.g, v).Matcher()
				b.StartTimer()
				stepAll(b, m, ids, dst)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/step")
		})
		b.Run(name+"/later", func(b *testing.B) {
			c := mustCompile(b, g.g, v)
			for b.Loop() {
				stepAll(b, c.Matcher(), ids, dst)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/step")
		})
	}
}

func stepAll(b *testing.B, m *Matcher, ids []int32, dst []uint32) {
	for i, id := range ids {
		m.Mask(dst)
		if err := m.Accept(id); err != nil {
			b.Fatal(strconv.Itoa(i), err)
		}
	}
	m.Mask(dst)
}

// split spells a text with tokens of a vocabulary: the longest that fit, or with a probability a random one.
func split(v *Vocabulary, text string, rng *rand.Rand, random float64) []int32 {
	byText := tokenIDs(v)
	var ids []int32
	for len(text) > 0 {
		var fits []int32
		for n := 1; n <= min(len(text), 40); n++ {
			if id, ok := byText[text[:n]]; ok {
				fits = append(fits, id)
			}
		}
		id := fits[len(fits)-1]
		if rng.Float64() < random {
			id = fits[rng.IntN(len(fits))]
		}
		ids = append(ids, id)
		text = text[len(v.tokens[id]):]
	}
	return ids
}

var textIDs sync.Map // of *Vocabulary to map[string]int32

func tokenIDs(v *Vocabulary) map[string]int32 {
	if ids, ok := textIDs.Load(v); ok {
		return ids.(map[string]int32)
	}
	ids := map[string]int32{}
	for _, id := range v.all.ids {
		ids[string(v.tokens[id])] = id
	}
	textIDs.Store(v, ids)
	return ids
}
