package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goart-dev/art/internal/jinja"
)

// controlTokens keep text from outside apart from the tokens that a template writes. They are the special tokens, and
// the added tokens that the template mentions, such as "<think>".
//
// Before a conversation is rendered, a mark is inserted into each control token that its texts spell. So every control
// token in the rendered text was written by the template; the marks are removed when the text is encoded.
type controlTokens struct {
	tok     *vocabulary
	ids     map[string]int32 // by text
	lengths [256][]int       // by first byte: the lengths of the texts that begin with it, longest first
}

// marks are characters that no text contains: Unicode's noncharacters.
var marks = []rune{
	0xfdd0, 0xfdd1, 0xfdd2, 0xfdd3, 0xfdd4, 0xfdd5, 0xfdd6, 0xfdd7,
	0xfdd8, 0xfdd9, 0xfdda, 0xfddb, 0xfddc, 0xfddd, 0xfdde, 0xfddf,
}

func newControlTokens(v *vocabulary, literals []string) (*controlTokens, error) {
	mentioned := strings.Join(literals, "\x00")
	c := &controlTokens{tok: v, ids: map[string]int32{}}
	for text, id := range v.added {
		inTemplate := strings.TrimSpace(text) != "" && len(text) > 1 && strings.Contains(mentioned, text)
		if !inTemplate && !v.IsSpecial(id) {
			continue
		}
		if inTemplate && v.Reachable(id) {
			return nil, fmt.Errorf("ordinary text can become the token %s, so content could not be told from control", text)
		}
		c.add(text, id)
	}
	return c, nil
}

// add adds a token that is not empty.
func (c *controlTokens) add(text string, id int32) {
	c.ids[text] = id
	of := &c.lengths[text[0]]
	if !slices.Contains(*of, len(text)) {
		*of = append(*of, len(text))
		slices.SortFunc(*of, func(a, b int) int { return b - a })
	}
}

func (c *controlTokens) special() *controlTokens {
	out := &controlTokens{tok: c.tok, ids: map[string]int32{}}
	for text, id := range c.ids {
		if c.tok.IsSpecial(id) {
			out.add(text, id)
		}
	}
	return out
}

// next returns where the first control token in s begins, and its text, the longest there; "" if there is none.
func (c *controlTokens) next(s string) (at int, token string) {
	for i := range len(s) {
		for _, n := range c.lengths[s[i]] {
			if i+n > len(s) {
				continue
			}
			if _, ok := c.ids[s[i:i+n]]; ok {
				return i, s[i : i+n]
			}
		}
	}
	return len(s), ""
}

// mark returns s with a mark in each control token that it spells, after the first character of the token.
func (c *controlTokens) mark(s string, mark rune) string {
	var out strings.Builder
	for s != "" {
		at, token := c.next(s)
		_, first := utf8.DecodeRuneInString(token)
		after := at + first
		out.WriteString(s[:after])
		if token != "" {
			out.WriteRune(mark)
		}
		s = s[after:]
	}
	return out.String()
}

// markAll returns a conversation with marks, and the mark; 0 if nothing in it spells a control token.
func (c *controlTokens) markAll(conv *conversation) (*conversation, rune, error) {
	found := false
	var all strings.Builder
	conv.mapTexts(func(s string) string {
		_, token := c.next(s)
		found = found || token != ""
		all.WriteString(s)
		return s
	})
	if !found {
		return conv, 0, nil
	}
	for _, mark := range marks {
		if !strings.ContainsRune(all.String(), mark) {
			return conv.mapTexts(func(s string) string { return c.mark(s, mark) }), mark, nil
		}
	}
	return nil, 0, errors.New("chat: the messages use all of the characters U+FDD0 to U+FDDF, which are not for text")
}

// mapTexts returns a conversation in which f has changed every text except roles and keys.
func (c *conversation) mapTexts(f func(s string) string) *conversation {
	out := &conversation{template: c.template, sampled: c.sampled, tools: jinja.MapTexts(c.tools, f)}
	for _, m := range c.messages {
		role, _ := m.Get("role")
		changed := jinja.MapTexts(m, f).(*jinja.Dict)
		changed.Set("role", role)
		out.messages = append(out.messages, changed)
	}
	return out
}

// unmark returns a text without marks.
func unmark(s string, mark rune) string {
	if mark == 0 {
		return s
	}
	return strings.ReplaceAll(s, string(mark), "")
}

// encode returns the ids of rendered text. mark is 0 if the text has none.
func (c *controlTokens) encode(text string, mark rune) []int32 {
	if mark == 0 || !strings.ContainsRune(text, mark) {
		return c.tok.Encode(text, false)
	}
	var ids []int32
	var ordinary strings.Builder
	flush := func() {
		if ordinary.Len() > 0 {
			ids = append(ids, c.tok.EncodeOrdinary(ordinary.String())...)
			ordinary.Reset()
		}
	}
	c.tok.Split(text, func(s string) {
		ordinary.WriteString(unmark(s, mark))
	}, func(id int32) {
		flush()
		ids = append(ids, id)
	})
	flush()
	return ids
}
