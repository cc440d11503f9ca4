package hosted

import (
	"fmt"

	"github.com/goart-dev/art"
)

const (
	// bytesPerToken estimates the tokens of a text, in English about 4.
	bytesPerToken = 4
	// maxBytesPerToken is the length of a token that few texts reach on average, in any encoding.
	maxBytesPerToken = 16
)

// checkContext refuses a prompt that certainly is too long.
func (b *Backend) checkContext(c *call) error {
	counter, _ := b.service.(TokenCounter)
	limit := b.opts.ContextLength
	if limit == 0 && counter != nil {
		limit = counter.ContextLength(c.base)
	}
	size := requestBytes(c.req)
	if limit == 0 || size < limit { // a token has a byte at least
		return nil
	}
	tokens, known := 0, false
	if counter != nil {
		tokens, known = counter.CountPrompt(c.base, c.req)
	}
	if !known {
		tokens = size / maxBytesPerToken
	}
	if tokens < limit {
		return nil
	}
	err := fmt.Errorf("%w: the prompt has %d tokens or more, and the context of %q is %d", art.ErrContextLength, tokens,
		c.base, limit)
	return &art.Error{Op: "complete", Err: err, Hint: "send fewer or shorter messages"}
}

// requestBytes is the length of the texts that a prompt is made of.
func requestBytes(req *art.ChatRequest) int {
	n := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		n += len(m.Content) + len(m.Name)
		for _, call := range m.ToolCalls {
			n += len(call.Name) + len(call.Arguments)
		}
	}
	for i := range req.Tools {
		n += len(req.Tools[i].Name) + len(req.Tools[i].Description) + len(req.Tools[i].Parameters)
	}
	return n
}
