package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Event is a server-sent event.
type Event struct {
	// Name is the type of the event; OpenAI's chat streams have none.
	Name string
	// Data is written as JSON.
	Data any
}

// done is the data of the event that ends the streams of OpenAI's older APIs, which is not JSON.
type done struct{}

// doneText is what done looks like.
const doneText = "[DONE]"

// EncodeEvents writes events in the form of text/event-stream.
func EncodeEvents(events []Event) ([]byte, error) {
	var out bytes.Buffer
	for _, e := range events {
		data := []byte(doneText)
		if _, isDone := e.Data.(done); !isDone {
			var err error
			if data, err = json.Marshal(e.Data); err != nil {
				return nil, err
			}
		}
		if e.Name != "" {
			fmt.Fprintf(&out, "event: %s\n", e.Name)
		}
		fmt.Fprintf(&out, "data: %s\n\n", data)
	}
	return out.Bytes(), nil
}
