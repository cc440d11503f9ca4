package chat

import (
	"strings"
	"testing"
)

// TestSyntax_ReadBack: calls that are written by the syntax of a format are read by its parser, alone and together,
// with tags as tokens and as text.
func TestSyntax_ReadBack(t *testing.T) {
	for name := range callSyntaxes {
		for _, tokens := range []bool{false, true} {
			f := &replyFormat{name: name, calls: callFormats[name], tagOf: map[int32]string{}}
			if tokens {
				f = smallFormat(t, name, "")
			}
			syntax, err := (&Template{reply: f}).Syntax()
			if err != nil || syntax.Call == nil {
				t.Fatal(name, err, syntax.NoCall)
			}
			for n := 1; n <= 2; n++ {
				text := written(f, syntax.Call, n)
				p := f.start(false, nil)
				p.add(text)
				if _, err := p.close(); err != nil {
					t.Errorf("%s: %q: %v", name, text, err)
				}
				calls := p.message.ToolCalls
				if len(calls) != n || calls[n-1].Name != `a"b` || calls[n-1].Arguments != `{"x": "]}"}` || p.message.Content != "" {
					t.Errorf("%s: %q: got %+v", name, text, p.message)
				}
			}
		}
	}
}

// written returns n calls as they are in the text of a reply.
func written(f *replyFormat, s *CallSyntax, n int) string {
	var text strings.Builder
	spell := func(parts []Part) {
		for _, p := range parts {
			text.WriteString(p.Text)
			if p.IsToken {
				text.WriteString(f.tagOf[p.Token])
			}
		}
	}
	spell(s.Open)
	for i := range n {
		if i > 0 {
			spell(s.Between)
		}
		spell(s.Begin)
		text.WriteString(`"a\"b"`)
		spell(s.Middle)
		text.WriteString(`{"x": "]}"}`)
		spell(s.End)
	}
	spell(s.Close)
	return text.String()
}
