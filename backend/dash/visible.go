package dash

import (
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"
)

// visible is a text that somebody else wrote, as HTML: escaped, and with characters that would not be seen, or would
// change how the text around them is shown, as marks.
func visible(text string) template.HTML {
	var b strings.Builder
	from := 0
	for i, r := range text {
		shown, size := "", utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError:
			_, size = utf8.DecodeRuneInString(text[i:])
			if size != 1 {
				continue // a real U+FFFD
			}
			shown = fmt.Sprintf("%02X", text[i])
		case !isHidden(r):
			continue
		case r < 0x20:
			shown = string(0x2400 + r)
		case r == 0x7f:
			shown = "\u2421"
		default:
			shown = fmt.Sprintf("U+%04X", r)
		}
		b.WriteString(template.HTMLEscapeString(text[from:i]))
		fmt.Fprintf(&b, `<span class="ctl">%s</span>`, shown)
		from = i + size
	}
	b.WriteString(template.HTMLEscapeString(text[from:]))
	return template.HTML(b.String())
}

// isHidden reports whether a character is a control: of terminals, of the direction of text, or one without a width.
// The joiners of scripts and emoji are none.
func isHidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0,
		r == 0x061c, r == 0x200b, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
		r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

// cut returns the beginning of a text, of at most n bytes, without cutting a character.
func cut(text string, n int) (beginning string, more bool) {
	if len(text) <= n {
		return text, false
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], true
}

// oneLine is the beginning of a text on one line.
func oneLine(text string, n int) string {
	text, more := cut(text, 4*n)
	text = strings.Join(strings.Fields(text), " ")
	short, cutAgain := cut(text, n)
	if more || cutAgain {
		short += " …"
	}
	return short
}
