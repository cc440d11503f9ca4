package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goart-dev/art/internal/onig"
)

// normalizer rewrites text before it is cut into words.
type normalizer func(piece) piece

// normalizers are the parsers of the components of tokenizer.json.
var normalizers = map[string]func(json.RawMessage) (normalizer, error){
	"NFC":          fixedNormalizer(formC),
	"NFD":          fixedNormalizer(formD),
	"NFKC":         fixedNormalizer(formKC),
	"NFKD":         fixedNormalizer(formKD),
	"Lowercase":    fixedNormalizer(lowercase),
	"StripAccents": fixedNormalizer(stripAccents),
	"Nmt":          fixedNormalizer(nmt),
	"ByteLevel":    fixedNormalizer(toByteLevelPiece),
	"Strip":        parseStrip,
	"Prepend":      parsePrepend,
	"Replace":      parseReplace,
	"Precompiled":  parsePrecompiled,
}

// maxGrowth bounds the factor by which a text may grow, so that a file cannot exhaust memory: a few replacements, each
// of a letter by ten of it, could.
const maxGrowth = 1 << 16

var errGrowth = fmt.Errorf("together with those before it, a text would grow more than %d times", maxGrowth)

// growth returns a bound of the factor by which a component lengthens a text, in bytes.
func (c component) growth() int {
	var f struct{ Content string }
	switch c.kind {
	case "Replace":
		if json.Unmarshal(c.raw, &f) == nil {
			return min(len(f.Content)+1, maxGrowth+1) // a pattern may match the empty string
		}
	case "NFKC", "NFKD":
		return 11 // U+FDFA, 33 bytes of 3
	case "NFC", "NFD", "Lowercase", "ByteLevel":
		return 3
	case "Precompiled":
		return maxReplacement
	}
	return 1
}

func fixedNormalizer(n normalizer) func(json.RawMessage) (normalizer, error) {
	return func(json.RawMessage) (normalizer, error) { return n, nil }
}

// parseNormalizers returns the steps of a normalizer, in order, and whether the last is ByteLevel.
func parseNormalizers(raw json.RawMessage) (steps []normalizer, byteLevel bool, err error) {
	if isNull(raw) {
		return nil, false, nil
	}
	parts, err := flatten(raw, "normalizer", "normalizers")
	if err != nil {
		return nil, false, err
	}
	growth := 1
	for _, part := range parts {
		if growth *= part.growth(); growth > maxGrowth {
			return nil, false, fmt.Errorf("normalizer %q: %w", part.kind, errGrowth)
		}
		read, ok := normalizers[part.kind]
		if !ok {
			return nil, false, unsupported("normalizer", part.kind, normalizers)
		}
		n, err := read(part.raw)
		if err != nil {
			return nil, false, fmt.Errorf("normalizer %q: %w", part.kind, err)
		}
		if byteLevel {
			return nil, false, fmt.Errorf("normalizer %q is not supported after ByteLevel", part.kind)
		}
		byteLevel = part.kind == "ByteLevel"
		steps = append(steps, n)
	}
	return steps, byteLevel, nil
}

func parseStrip(raw json.RawMessage) (normalizer, error) {
	var c struct {
		Left  bool `json:"strip_left"`
		Right bool `json:"strip_right"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	return func(p piece) piece {
		start, end := 0, len(p.text)
		if c.Left {
			start = end - len(strings.TrimLeftFunc(p.text, unicode.IsSpace))
		}
		if c.Right {
			end = max(start, len(strings.TrimRightFunc(p.text, unicode.IsSpace)))
		}
		return p.slice(start, end)
	}, nil
}

func parsePrepend(raw json.RawMessage) (normalizer, error) {
	var c struct {
		Prepend string `json:"prepend"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if c.Prepend == "" {
		return nil, errors.New("prepend is empty")
	}
	return func(p piece) piece { return p.prepend(c.Prepend) }, nil
}

func parseReplace(raw json.RawMessage) (normalizer, error) {
	var c struct {
		Pattern patternFile `json:"pattern"`
		Content string      `json:"content"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	find, err := c.Pattern.matcher()
	if err != nil {
		return nil, err
	}
	return func(p piece) piece { return p.replaced(find, c.Content) }, nil
}

// patternFile is a pattern of a Split or a Replace.
type patternFile struct{ Regex, String *string }

func (f patternFile) matcher() (matcher, error) {
	switch {
	case f.Regex != nil && f.String == nil:
		re, err := onig.Compile(*f.Regex)
		if err != nil {
			return nil, err
		}
		return matchRegex(re), nil
	case f.String != nil && *f.String != "":
		return matchString(*f.String), nil
	}
	return nil, errors.New("it has no pattern: set Regex or String")
}

// stripAccents drops combining marks. Composed characters keep theirs: files decompose them first.
func stripAccents(p piece) piece { return p.filter(func(r rune) bool { return !isMark(r) }) }

// filter drops the characters that are not to be kept.
func (p piece) filter(keep func(rune) bool) piece {
	if strings.IndexFunc(p.text, func(r rune) bool { return !keep(r) }) < 0 {
		return p
	}
	var text strings.Builder
	q := piece{begin: p.begin}
	for i, r := range p.text {
		if !keep(r) {
			continue
		}
		_, n := utf8.DecodeRuneInString(p.text[i:])
		text.WriteString(p.text[i : i+n])
		if p.origins != nil {
			q.origins = append(q.origins, p.origins[i:i+n]...)
		}
	}
	q.text = text.String()
	return q
}

// nmt drops control characters, and replaces white space and zero-width characters by spaces, as SentencePiece's
// normalizer of that name.
func nmt(p piece) piece {
	control := func(r rune) bool {
		return 1 <= r && r <= 8 || r == 0xB || 0xE <= r && r <= 0x1F || r == 0x7F || r == 0x8F || r == 0x9F
	}
	p = p.filter(func(r rune) bool { return !control(r) })
	return p.replaced(matchRune(func(r rune) bool {
		switch r {
		case '\t', '\n', '\f', '\r', 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, utf8.RuneError:
			return true
		}
		return 0x200B <= r && r <= 0x200F
	}), " ")
}
