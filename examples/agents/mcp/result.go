package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// textOf is what the model reads of a result: its texts, and a note in place of what is no text. A result with
// structured content only is that as JSON.
func textOf(result *sdk.CallToolResult) string {
	var parts []string
	for _, c := range result.Content {
		parts = append(parts, contentText(c))
	}
	if len(parts) == 0 && result.StructuredContent != nil {
		if text, err := json.Marshal(result.StructuredContent); err == nil {
			return string(text)
		}
	}
	return strings.Join(parts, "\n")
}

// contentText is one part of a result.
func contentText(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %s]", c.URI)
	case *sdk.EmbeddedResource:
		return contentsText([]*sdk.ResourceContents{c.Resource})
	}
	return fmt.Sprintf("[%T]", c)
}

// contentsText is what the model reads of resources.
func contentsText(list []*sdk.ResourceContents) string {
	var parts []string
	for _, c := range list {
		switch {
		case c == nil:
		case len(c.Blob) > 0:
			parts = append(parts, fmt.Sprintf("[%s, %s, %d bytes]", c.URI, c.MIMEType, len(c.Blob)))
		default:
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// cut shortens a text to a number of characters, and says so at its end. Bytes that are no UTF-8 become U+FFFD.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	note := fmt.Sprintf(" [cut: %d characters]", n)
	keep := max(0, most-len(note))
	at := 0
	for range keep {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at] + note
}
