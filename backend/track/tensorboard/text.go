package tensorboard

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// maxText bounds the text of a trajectory, in bytes.
const maxText = 16 << 10

// texts returns up to n trajectories as Markdown: the first of each group, then the second, so that several groups are
// seen.
func texts(g track.Groups, n int) []string {
	var out []string
	for attempt, more := 0, true; more && len(out) < n; attempt++ {
		more = false
		for i, group := range g.Groups {
			if group == nil || attempt >= len(group.Trajectories) || len(out) == n {
				continue
			}
			more = true
			if t := group.Trajectories[attempt]; t != nil {
				out = append(out, markdown(t, i, attempt))
			}
		}
	}
	return out
}

// markdown writes a conversation. What was said is indented: a block of code, in which nothing is Markdown.
func markdown(t *art.Trajectory, group, attempt int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**group %d, attempt %d, reward %.4g**\n", group, attempt, t.Reward)
	for _, h := range t.Histories() {
		for i := range h.Messages {
			m := &h.Messages[i]
			fmt.Fprintf(&b, "\n%s\n\n", m.Role)
			indent(&b, m.Reasoning)
			indent(&b, m.Content)
			for _, call := range m.ToolCalls {
				indent(&b, call.Name+" "+call.Arguments)
			}
			if b.Len() > maxText {
				return cut(b.String(), maxText) + " ..."
			}
		}
	}
	return b.String()
}

func indent(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	for line := range strings.Lines(strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")) {
		b.WriteString("    " + strings.TrimRight(line, "\r\n") + "\n")
	}
}

// cut returns the first n bytes at most, whole characters.
func cut(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
