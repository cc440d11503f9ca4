package chat

import "testing"

// readUntil reads a reply, encoded with its tags as tokens.
func readUntil(t *testing.T, template *Template, text string, ends Ends) (*ReplyReader, Delta, string) {
	t.Helper()
	r, all := template.Read(nil, nil).Until(ends), Delta{}
	for _, id := range template.tok.Encode(text, false) {
		d := r.Add(id)
		all.Reasoning, all.Content = all.Reasoning+d.Reasoning, all.Content+d.Content
		all.ToolCalls = append(all.ToolCalls, d.ToolCalls...)
	}
	last, message, _ := r.Close()
	all.Reasoning, all.Content = all.Reasoning+last.Reasoning, all.Content+last.Content
	all.ToolCalls = append(all.ToolCalls, last.ToolCalls...)
	if all.Content != message.Content || all.Reasoning != message.Reasoning {
		t.Errorf("deltas %+v of message %+v", all, message)
	}
	return r, all, message.Content
}

// TestReplyReader_Until: what comes before a stop string is parsed: reasoning, text and complete calls.
func TestReplyReader_Until(t *testing.T) {
	call := "<tool_call>\n<function=f>\n</function>\n</tool_call>"
	template := withTemplate(t, "qwen3_coder", "<tool_call>", "</tool_call>")
	for _, c := range []struct {
		text    string
		ends    Ends
		content string
		calls   int
		stop    string
	}{
		{"one END two", Ends{Text: []string{"END"}}, "one ", 0, "END"},
		{"one END two END", Ends{Text: []string{"END"}, After: 99}, "one END two END", 0, ""},
		{"one" + call + "END" + call, Ends{Text: []string{"END"}}, "one", 1, "END"},
		{"one" + call + "two", Ends{Text: []string{"END"}}, "onetwo", 1, ""},
	} {
		r, all, _ := readUntil(t, template, c.text, c.ends)
		if all.Content != c.content || len(all.ToolCalls) != c.calls || r.Stopped() != c.stop {
			t.Errorf("%q: %+v, stopped by %q", c.text, all, r.Stopped())
		}
	}
	ids := template.tok.Encode("one two", false)
	_, all, _ := readUntil(t, template, "one two", Ends{IDs: ids[len(ids)-1:]})
	if want := template.tok.Decode(ids[:len(ids)-1], true); all.Content != want {
		t.Errorf("a stop token leaves %q, want %q", all.Content, want)
	}
}
