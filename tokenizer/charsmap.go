package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsMap is SentencePiece's table of replacements ("precompiled_charsmap"): a double-array trie over the texts to
// replace, whose values are offsets into the replacements, which are terminated by zero bytes.
type charsMap struct {
	units        []uint32
	replacements string
}

// maxReplacement bounds a replacement, in bytes: that of U+FDFA, the longest of Unicode, has 33.
const maxReplacement = 255

// parseCharsMap parses the length of the trie, the trie as little-endian words, and the replacements.
func parseCharsMap(data []byte) (*charsMap, error) {
	if len(data) < 4 {
		return nil, errors.New("the charsmap is shorter than its header")
	}
	size := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(size) > uint64(len(data)) || size%4 != 0 {
		return nil, errors.New("the charsmap is shorter than its trie")
	}
	m := &charsMap{units: make([]uint32, size/4), replacements: string(data[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	for text := range strings.SplitSeq(m.replacements, "\x00") {
		if len(text) > maxReplacement {
			return nil, fmt.Errorf("a replacement of the charsmap has %d bytes, more than %d", len(text), maxReplacement)
		}
	}
	if !utf8.ValidString(m.replacements) {
		return nil, errors.New("the replacements of the charsmap are not UTF-8")
	}
	return m, nil
}

// The words of the trie (Darts-clone) have a label of nine bits, an offset, and whether a value is below.

func unitHasLeaf(u uint32) bool  { return u>>8&1 == 1 }
func unitValue(u uint32) uint32  { return u & (1<<31 - 1) }
func unitLabel(u uint32) uint32  { return u & (1<<31 | 0xFF) }
func unitOffset(u uint32) uint32 { return u >> 10 << (u & (1 << 9) >> 6) }

// prefixes calls yield for the keys that text begins with, shortest first, until it returns false.
func (m *charsMap) prefixes(text string, yield func(length int, value uint32) bool) {
	if len(m.units) == 0 {
		return
	}
	at := unitOffset(m.units[0])
	for i := range len(text) {
		c := uint32(text[i])
		at ^= c
		if c == 0 || uint64(at) >= uint64(len(m.units)) {
			return
		}
		unit := m.units[at]
		if unitLabel(unit) != c {
			return
		}
		at ^= unitOffset(unit)
		if !unitHasLeaf(unit) {
			continue
		}
		if uint64(at) >= uint64(len(m.units)) || !yield(i+1, unitValue(m.units[at])) {
			return
		}
	}
}

// replacement returns the replacement for a value of the trie.
func (m *charsMap) replacement(value uint32) string {
	if uint64(value) >= uint64(len(m.replacements)) {
		return ""
	}
	text, _, _ := strings.Cut(m.replacements[value:], "\x00")
	return strings.ToValidUTF8(text, "")
}

// shortest returns the replacement of the shortest key that text begins with.
func (m *charsMap) shortest(text string) (out string, ok bool) {
	m.prefixes(text, func(_ int, value uint32) bool {
		out, ok = m.replacement(value), true
		return false
	})
	return out, ok
}

func precompiledNormalizer(c struct {
	CharsMap string `json:"precompiled_charsmap"`
}) (normalizer, error) {
	data, err := base64.StdEncoding.DecodeString(c.CharsMap)
	if err != nil {
		return nil, err
	}
	m, err := parseCharsMap(data)
	if err != nil {
		return nil, err
	}
	return m.byGrapheme, nil
}

// maxGrapheme is the length in bytes from which a grapheme cluster is not looked up as a whole.
const maxGrapheme = 6

// byGrapheme replaces grapheme clusters, or else single characters, as the reference does: if a key is the beginning of
// one, all of it is replaced. SentencePiece replaces the longest key instead.
func (m *charsMap) byGrapheme(p piece) piece {
	var changes []change
	modified := false
	for rest, state := p.text, -1; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if len(cluster) < maxGrapheme {
			if text, ok := m.shortest(cluster); ok {
				changes, modified = replaceCluster(changes, cluster, text), true
				continue
			}
		}
		for i, r := range cluster {
			_, n := utf8.DecodeRuneInString(cluster[i:])
			if text, ok := m.shortest(cluster[i : i+n]); ok {
				changes, modified = replaceCluster(changes, cluster[i:i+n], text), true
				continue
			}
			changes = append(changes, change{r, 0})
		}
	}
	if !modified {
		return p
	}
	return p.rewrite(changes)
}

// replaceCluster appends text in place of old. Characters that old has more of count as removed with the character
// before; if there is none, they are lost, as in the reference.
func replaceCluster(changes []change, old, text string) []change {
	before := utf8.RuneCountInString(old)
	count := 0
	for _, r := range text {
		changes = append(changes, change{r, 0})
		if count++; count > before {
			changes[len(changes)-1].delta = 1
		}
	}
	if count < before && len(changes) > 0 {
		changes[len(changes)-1].delta -= before - count
	}
	return changes
}
