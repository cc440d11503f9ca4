package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art/internal/jinja"
)

// controlTokens keep text from outside apart from the tokens that a template writes. They are the special tokens, and the
// added tokens that the template mentions, such as "<think>".
//
// Before a conversation is rendered, a mark goes into each control token that its texts spell. So what is found in the
// rendered text is the template's; the marks are taken out when the text is encoded.
type controlTokens struct {
	tok  *Tokenizer
	find finder
}

// marks are characters that are never part of a text: Unicode's noncharacters.
var marks = []rune{0xfdd0, 0xfdd1, 0xfdd2, 0xfdd3, 0xfdd4, 0xfdd5, 0xfdd6, 0xfdd7, 0xfdd8, 0xfdd9, 0xfdda, 0xfddb, 0xfddc, 0xfddd, 0xfdde, 0xfddf}

func newControlTokens(t *Tokenizer, literals []string) (*controlTokens, error) {
	mentioned := strings.Join(literals, "\x00")
	c := &controlTokens{tok: t}
	for text, id := range t.added.byContent {
		inTemplate := strings.TrimSpace(text) != "" && len(text) > 1 && strings.Contains(mentioned, text)
		if !inTemplate && !t.IsSpecial(id) {
			continue
		}
		if inTemplate && t.model.produces(id) {
			return nil, fmt.Errorf("the token %s can come out of ordinary text, so content could not be told from control", text)
		}
		c.find.add(text, addedToken{ID: id})
	}
	return c, c.find.build()
}

// special returns the controls that are special tokens only.
func (c *controlTokens) special() (*controlTokens, error) {
	out := &controlTokens{tok: c.tok}
	for _, p := range c.find.patterns {
		if c.tok.IsSpecial(p.token.ID) {
			out.find.add(p.text, p.token)
		}
	}
	return out, out.find.build()
}

// next returns where the first control token in s begins, and its text; "" when there is none.
func (c *controlTokens) next(s string) (at int, token string) {
	for i := range len(s) {
		if p := c.find.at(s, i); p != nil {
			return i, p.text
		}
	}
	return len(s), ""
}

// spelled tells whether a text spells a control token.
func (c *controlTokens) spelled(s string) bool {
	_, token := c.next(s)
	return token != ""
}

// broken returns s with a mark in each control token that it spells, behind its first character.
func (c *controlTokens) broken(s string, mark rune) string {
	var out strings.Builder
	for s != "" {
		at, token := c.next(s)
		behind := at + firstRune(token)
		out.WriteString(s[:behind])
		if token != "" {
			out.WriteRune(mark)
		}
		s = s[behind:]
	}
	return out.String()
}

// firstRune returns the length of the first character.
func firstRune(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

// marked returns a conversation with marks, and the mark; 0 when nothing in it spells a control token.
func (c *controlTokens) marked(conv *conversation) (*conversation, rune, error) {
	found := false
	var all strings.Builder
	look := func(s string) string {
		found = found || c.spelled(s)
		all.WriteString(s)
		return s
	}
	conv.mapTexts(look)
	if !found {
		return conv, 0, nil
	}
	for _, mark := range marks {
		if !strings.ContainsRune(all.String(), mark) {
			return conv.mapTexts(func(s string) string { return c.broken(s, mark) }), mark, nil
		}
	}
	return nil, 0, errors.New("tokenizer: the messages use all of the characters U+FDD0 to U+FDDF, which are not for text")
}

// mapTexts returns a conversation with each text in it changed, but for roles and keys.
func (c *conversation) mapTexts(f func(s string) string) *conversation {
	out := &conversation{template: c.template, tools: jinja.MapTexts(c.tools, f)}
	for _, m := range c.messages {
		role, _ := m.Get("role")
		changed := jinja.MapTexts(m, f).(*jinja.Dict)
		changed.Set("role", role)
		out.messages = append(out.messages, changed)
	}
	return out
}

// unmarked returns a text without marks.
func unmarked(s string, mark rune) string {
	if mark == 0 {
		return s
	}
	return strings.ReplaceAll(s, string(mark), "")
}

// encode returns the ids of rendered text. mark is 0 when there is none in it.
func (c *controlTokens) encode(text string, mark rune) []int32 {
	if mark == 0 || !strings.ContainsRune(text, mark) {
		return c.tok.Encode(text, false)
	}
	var ids []int32
	var words strings.Builder
	flush := func() {
		if words.Len() > 0 {
			ids = append(ids, c.tok.EncodeOrdinary(words.String())...)
			words.Reset()
		}
	}
	c.tok.scan(text, func(s string) {
		words.WriteString(unmarked(s, mark))
	}, func(id int32) {
		flush()
		ids = append(ids, id)
	})
	flush()
	return ids
}
