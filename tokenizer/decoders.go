package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// decoder makes the stages that turn tokens into text. Each reply has stages of its own: they remember what came before.
type decoder []func() stage

// stage is one component of a decoder at work. It takes the texts of tokens one by one and passes texts on, as soon as
// nothing that may follow can change them.
type stage interface {
	push(text string, emit func(string))
	flush(emit func(string)) // no token follows
}

// decoders are the components of tokenizer.json, each with what reads it. fused says that the stage gets parts of one
// text, and not a text for each token.
var decoders = map[string]func(raw json.RawMessage, fused bool) (func() stage, error){
	"ByteLevel":    func(json.RawMessage, bool) (func() stage, error) { return func() stage { return &bytesStage{} }, nil },
	"ByteFallback": parseByteFallback,
	"Fuse":         func(json.RawMessage, bool) (func() stage, error) { return func() stage { return mapStage(keep) }, nil },
	"Replace":      parseReplaceDecoder,
	"Strip":        parseStripDecoder,
	"Metaspace":    parseMetaspaceDecoder,
	"BPEDecoder":   parseBPEDecoder,
}

func keep(s string) string { return s }

func parseDecoder(raw json.RawMessage) (decoder, error) {
	if isNull(raw) {
		return decoder{func() stage { return &spacesStage{} }}, nil
	}
	parts, err := flatten(raw, "decoder", "decoders")
	if err != nil {
		return nil, err
	}
	var d decoder
	fused, growth := false, 1
	for _, part := range parts {
		if growth *= part.growth(); growth > maxGrowth {
			return decoder{}, fmt.Errorf("decoder %q: together with those before it, a text would grow more than %d times", part.kind, maxGrowth)
		}
		read, ok := decoders[part.kind]
		if !ok {
			return nil, unsupported("decoder", part.kind, decoders)
		}
		s, err := read(part.raw, fused)
		if err != nil {
			return nil, fmt.Errorf("decoder %q: %w", part.kind, err)
		}
		d = append(d, s)
		fused = fused || part.kind == "Fuse" || part.kind == "ByteLevel"
	}
	return d, nil
}

// running is a decoder at work.
type running struct {
	stages []stage
	out    strings.Builder
}

func (d decoder) start() *running {
	r := &running{}
	for _, s := range d {
		r.stages = append(r.stages, s())
	}
	return r
}

func (r *running) push(text string) { r.pass(0, text) }

func (r *running) pass(i int, text string) {
	if i == len(r.stages) {
		r.out.WriteString(text)
		return
	}
	r.stages[i].push(text, func(s string) { r.pass(i+1, s) })
}

func (r *running) flush() {
	for i, s := range r.stages {
		s.flush(func(s string) { r.pass(i+1, s) })
	}
}

// take returns the text that came out since the last time.
func (r *running) take() string {
	text := r.out.String()
	r.out.Reset()
	return text
}
