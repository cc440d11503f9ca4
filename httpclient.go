package art

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// HTTPClient returns a client that answers OpenAI requests as m, in process and without a socket: give it to the OpenAI
// client that an agent already uses. The host of a URL is ignored. Requests made with a context of [Record] are
// recorded, and their seeds follow a gather's context like those of [Model.Chat]. When the code that made them fails
// after an error response, [Record] and the [Failure] of a gather quote that response, which the errors of many clients
// leave out.
//
// When m is not registered, or its backend is no driver.HTTPServer, each request fails with [ErrNotRegistered] or
// [ErrUnsupported]. A client made before [Model.Register] works after it.
func (m *Model) HTTPClient() *http.Client {
	return &http.Client{Transport: transport{m}}
}

// transport looks the backend up at each request, so that a client may be made before the model is registered.
type transport struct{ m *Model }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	server, err := capability[httpServer](t.m, "serve request", "driver.HTTPServer")
	if err != nil {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper must close it, on errors too
		}
		return nil, err
	}
	response, err := server.Transport(t.m).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if r, ok := req.Context().Value(refusalKey{}).(*refusal); ok {
		r.note(response)
	}
	return response, nil
}

// refusal remembers the model's last response to an HTTP client, when that was an error. Clients leave its message out
// of their errors (openai-go says "400 Bad Request" and no more), but the reader of a failed rollout needs to know why.
type refusal struct{ last atomic.Pointer[answer] }

type answer struct{ status, message string }

type refusalKey struct{}

// withRefusal returns a context whose HTTP calls of the model are remembered.
func withRefusal(ctx context.Context) (context.Context, *refusal) {
	r := &refusal{}
	return context.WithValue(ctx, refusalKey{}, r), r
}

// explained adds the last error response to the error of the code that received it, unless the error quotes it already.
func (r *refusal) explained(err error) error {
	a := r.last.Load()
	if err == nil || a == nil || strings.Contains(err.Error(), a.message) {
		return err
	}
	return fmt.Errorf("%w; the model's last answer was %s: %s", err, a.status, a.message)
}

// note records a response, whose body can still be read.
func (r *refusal) note(response *http.Response) {
	if response.StatusCode < http.StatusBadRequest {
		r.last.Store(nil)
		return
	}
	// If reading the body fails here, it fails again for the client.
	head, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	rest := response.Body
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	r.last.Store(&answer{response.Status, errorMessage(head)})
}

// errorMessage returns the message of an error of OpenAI's form, else the text.
func errorMessage(body []byte) string {
	const longest = 4 << 10
	var read struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text := string(bytes.TrimSpace(body))
	if json.Unmarshal(body, &read) == nil && read.Error.Message != "" {
		text = read.Error.Message
	}
	return strings.ToValidUTF8(text[:min(len(text), longest)], "\uFFFD")
}

// wireField is one field of a JSON object that was read; the fields are in their original order.
type wireField struct {
	key string
	// raw is the value as it was written; nil when it equals the canonical form of the Go fields.
	raw json.RawMessage
	// sub are the fields of a nested object of which Go fields hold a part.
	sub []wireField
}

// knownField is a field of a JSON object that Go fields hold.
type knownField struct {
	key string
	// raw is the canonical form of the Go value; nil leaves the field out.
	raw json.RawMessage
	// sub are the fields of a nested object, in place of raw.
	sub []knownField
	// zero is set when the Go value is empty: an object that was read without the field stays without it.
	zero bool
	// says reports whether raw, which was read, still equals the Go value.
	says func(raw json.RawMessage) bool
}

// keepWire returns what an object that was read has beyond the canonical form of known; nil when there is nothing.
func keepWire(read []wireField, known []knownField) []wireField {
	out := make([]wireField, 0, len(read))
	for _, f := range read {
		k := findKnown(known, f.key)
		switch {
		case k == nil:
			f.raw = normalize(f.raw)
		case k.sub != nil:
			nested, _ := parseObject(f.raw) // known is what was decoded from it
			f.sub, f.raw = keepWire(nested, k.sub), nil
		case sameForm(f.raw, k.raw):
			f.raw = nil
		default:
			f.raw = normalize(f.raw)
		}
		out = append(out, f)
	}
	absent := func(k knownField) bool { return k.raw == nil && k.sub == nil }
	written := slices.DeleteFunc(slices.Clone(known), absent)
	isCanonical := func(f wireField, k knownField) bool { return f.key == k.key && f.raw == nil && f.sub == nil }
	if slices.EqualFunc(out, written, isCanonical) {
		return nil
	}
	return out
}

// sameForm reports whether writing canonical in place of raw loses nothing but insignificant detail.
func sameForm(raw, canonical json.RawMessage) bool {
	a, b := kindOf(raw), kindOf(canonical)
	switch {
	case canonical == nil || a != b:
		return false
	case a == kindString:
		return stringOf(raw) == stringOf(canonical)
	case a == kindArray:
		return len(canonical) > len("[]") // of objects that keep their own form
	}
	return bytes.Equal(normalize(raw), normalize(canonical))
}

// appendObject writes an object: the fields that were read in their original order, then those added in Go.
func appendObject(b []byte, read []wireField, known []knownField) []byte {
	b = append(b, '{')
	for _, f := range read {
		k := findKnown(known, f.key)
		switch {
		case k == nil || f.raw != nil && k.says(f.raw):
			b = appendField(b, f.key, f.raw)
		case k.sub != nil && f.sub != nil:
			b = appendField(b, f.key, appendObject(nil, f.sub, k.sub))
		default:
			b = appendKnown(b, k)
		}
	}
	for i := range known {
		isRead := slices.ContainsFunc(read, func(f wireField) bool { return f.key == known[i].key })
		if !isRead && (read == nil || !known[i].zero) {
			b = appendKnown(b, &known[i])
		}
	}
	return append(b, '}')
}

// appendKnown writes the canonical form of a field.
func appendKnown(b []byte, k *knownField) []byte {
	switch {
	case k.sub != nil:
		return appendField(b, k.key, appendObject(nil, nil, k.sub))
	case k.raw != nil:
		return appendField(b, k.key, k.raw)
	}
	return b
}

// appendField writes key and value, after a comma if needed.
func appendField(b []byte, key string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendQuoted(b, key)
	b = append(b, ':')
	return append(b, value...)
}

func findKnown(known []knownField, key string) *knownField {
	for i := range known {
		if known[i].key == key {
			return &known[i]
		}
	}
	return nil
}
