// Package callid makes the ids of tool calls for which a model or a service gives none, or one that the conversation
// has already.
package callid

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/goart-dev/art"
)

// Source is what the ids of the calls of one reply are derived from.
type Source [sha256.Size]byte

// Of returns the source of a reply. prompt is everything that the reply answers, so that ids do not repeat in a
// conversation, even one whose beginning was dropped. seed is that of the sampling: it differs between several replies
// to one prompt, and is the same when a run is repeated.
func Of(prompt []byte, seed uint64) Source {
	h := sha256.New()
	h.Write(prompt)
	h.Write(binary.LittleEndian.AppendUint64(nil, seed)) // its length is fixed, so nothing separates it
	return Source(h.Sum(nil))
}

// Length is that of an id: what Mistral's templates demand. Among n calls, the probability that two have the same id is
// about n^2 / 3e16.
const Length = 9

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// ID returns the id of the i-th call: nine letters and digits.
func (s Source) ID(i int) string {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(slices.Clone(s[:]), uint64(i)))
	var id [Length]byte
	for at, x := 0, binary.LittleEndian.Uint64(sum[:]); at < Length; at++ {
		id[at] = alphabet[x%uint64(len(alphabet))]
		x /= uint64(len(alphabet))
	}
	return string(id[:])
}

// Taken returns the ids that messages have, also of calls that were dropped from them but whose results were not.
func Taken(messages []art.Message) map[string]bool {
	taken := map[string]bool{}
	for i := range messages {
		taken[messages[i].ToolCallID] = true
		for _, call := range messages[i].ToolCalls {
			taken[call.ID] = true
		}
	}
	return taken
}

// Complete gives an id to each call of a service's reply that has none, or one that is taken. The tokens of the prompt
// are not known, so the messages are what the ids are derived from.
func Complete(calls []art.ToolCall, req *art.ChatRequest) {
	taken := Taken(req.Messages)
	taken[""] = true
	for i := range calls {
		if taken[calls[i].ID] {
			data, _ := json.Marshal(req.Messages) // they were sent, so they can be written
			calls[i].ID = Of(data, req.Settings.Seed).ID(i)
		}
		taken[calls[i].ID] = true
	}
}
