package chat

import (
	"slices"
	"testing"

	"github.com/goart-dev/art"
)

// TestParse_CallsInReasoning: calls in reasoning that never closes are calls only where the model ends its turn with
// them.
func TestParse_CallsInReasoning(t *testing.T) {
	const call = "<tool_call>get_weather\n<arg_key>n</arg_key>\n<arg_value>5</arg_value>\n</tool_call>"
	const more = "<tool_call>get_weather</tool_call>"
	for _, c := range []struct {
		name, text string
		ends       bool // the model ends its turn
		reasoning  string
		calls      int
	}{
		{"forgotten tag", "Hm.\n" + call, true, "Hm.", 1},
		{"several", "Hm." + call + "\n" + more + "\n", true, "Hm.", 2},
		{"nothing else", call, true, "", 1},
		{"cut off", "Hm.\n" + call, false, "Hm.\n" + call, 0},
		{"cut off in a call", "Hm." + call[:30], false, "Hm." + call[:30], 0},
		{"ended in a call", "Hm." + call[:30], true, "Hm." + call[:30], 0},
		{"text behind it", "Hm." + call + " Or not.", true, "Hm." + call + " Or not.", 0},
		{"only the last ones", "Like " + more + " or <tool_call> so:\n" + call + more, true, "Like " + more + " or <tool_call> so:", 2},
		{"a mention", "Use <tool_call>.", true, "Use <tool_call>.", 0},
		{"malformed", "Hm.<tool_call>{}</tool_call>", true, "Hm.<tool_call>{}</tool_call>", 0},
		{"closed", "Hm." + call + "\n</think>\nNo.", true, "Hm." + call, 0},
		{"closed and called", "Hm." + more + "</think>" + call, true, "Hm." + more, 1},
	} {
		tags := append([]string{"<think>", "</think>", "<tool_call>", "</tool_call>"}, glmTags...)
		template := withTemplate(t, "glm", tags...)
		tools, h := []art.Tool{schema}, []art.Message{art.User("Hi")}
		prompt, ids := template.mustPrompt(t, h, tools), template.tok.Encode("<think>"+c.text, false)
		if c.ends {
			ids = append(ids, template.EndOfTurn()[0])
		}
		m, err := template.Parse(prompt, ids, tools)
		if err != nil || m.Reasoning != c.reasoning || len(m.ToolCalls) != c.calls {
			t.Errorf("%s: got %+v, %v", c.name, m, err)
			continue
		}
		if early, err := streamed(template.Stream(prompt, tools), ids); err != nil || !sameReply(&early, &m) {
			t.Errorf("%s: as it comes %+v, %v", c.name, early, err)
		}
		m.Sample = &art.Sample{PromptIDs: prompt, IDs: ids}
		prompt, err = template.Prompt(append(append(h, m), results(m)...), tools)
		want := append(slices.Clone(m.Sample.PromptIDs), ids...)
		if c.calls > 0 && (err != nil || len(prompt) < len(want) || !slices.Equal(prompt[:len(want)], want)) {
			t.Errorf("%s: the next prompt is %q, %v", c.name, template.tok.Decode(prompt, false), err)
		}
	}
}

// TestParse_CallsInReasoningOfAllFormats: every format with reasoning and tags around calls reads them.
func TestParse_CallsInReasoningOfAllFormats(t *testing.T) {
	for parser, write := range textFormats {
		for _, thinking := range []bool{false, true} {
			format := smallFormat(t, parser, "</think>")
			text := "Hm.\n" + write("get_weather", [2]string{"n", "5"})
			if !thinking {
				text = "<think>" + text
			}
			p := format.start(thinking, []art.Tool{schema})
			p.ended = true
			m, err := readDeltas(t, p, withTokens(format, text))
			if err != "<nil>" || m.Reasoning != "Hm." || m.Content != "" || len(m.ToolCalls) != 1 ||
				m.ToolCalls[0].Arguments != `{"n": 5}` {
				t.Errorf("%s: %+v, %s", parser, m, err)
			}
		}
	}
}
