package hosted

import (
	"encoding/json"
	"fmt"

	"github.com/goart-dev/art"
)

// TextOnly returns an [art.ErrUnsupported] when a message has parts that are not text, such as images: for a
// [Service] that sends only the texts.
func TextOnly(messages []art.Message) error {
	for i := range messages {
		data, err := json.Marshal(messages[i])
		if err != nil {
			return err
		}
		var read struct {
			Content json.RawMessage `json:"content"`
		}
		var parts []struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(data, &read) != nil || json.Unmarshal(read.Content, &parts) != nil {
			continue // a string, or null
		}
		for _, part := range parts {
			if part.Type != "text" {
				err := fmt.Errorf("%w: messages[%d] has a part of type %q", art.ErrUnsupported, i, part.Type)
				return &art.Error{Op: "complete", Err: err, Hint: "send texts, or use backend/openai"}
			}
		}
	}
	return nil
}
