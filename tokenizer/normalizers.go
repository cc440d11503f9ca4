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
	"NFC":          fixed[normalizer](formC),
	"NFD":          fixed[normalizer](formD),
	"NFKC":         fixed[normalizer](formKC),
	"NFKD":         fixed[normalizer](formKD),
	"Lowercase":    fixed[normalizer](lowercase),
	"StripAccents": fixed[normalizer](stripAccents),
	"Nmt":          fixed[normalizer](nmt),
	"ByteLevel":    fixed[normalizer](toByteLevelPiece),
	"Strip":        parsed(stripNormalizer),
	"Prepend":      parsed(prependNormalizer),
	"Replace":      parsed(replaceNormalizer),
	"Precompiled":  parsed(precompiledNormalizer),
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

// parseNormalizers returns the steps of a normalizer, in order, and whether the last is ByteLevel.
func parseNormalizers(raw json.RawMessage) (steps []normalizer, byteLevel bool, err error) {
	growth := 1
	err = components(raw, "normalizer", "normalizers", normalizers,
		func(part component, read func(json.RawMessage) (normalizer, error)) error {
			if growth *= part.growth(); growth > maxGrowth {
				return errGrowth
			}
			n, err := read(part.raw)
			if err == nil && byteLevel {
				err = errors.New("it is not supported after ByteLevel")
			}
			byteLevel = part.kind == "ByteLevel"
			steps = append(steps, n)
			return err
		})
	return steps, byteLevel, err
}

func stripNormalizer(c struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}) (normalizer, error) {
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

func prependNormalizer(c struct{ Prepend string }) (normalizer, error) {
	if c.Prepend == "" {
		return nil, errors.New("prepend is empty")
	}
	return func(p piece) piece { return p.prepend(c.Prepend) }, nil
}

// replaceFile is the component Replace of normalizers and decoders.
type replaceFile struct {
	Pattern patternFile
	Content string
}

func replaceNormalizer(c replaceFile) (normalizer, error) {
	find, err := c.Pattern.matcher()
	return func(p piece) piece { return p.replaced(find, c.Content) }, err
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
	out := pieceBuilder{tracked: p.origins != nil}
	for i, r := range p.text {
		if keep(r) {
			_, n := utf8.DecodeRuneInString(p.text[i:])
			out.add(p.slice(i, i+n))
		}
	}
	return out.piece(p.begin)
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
