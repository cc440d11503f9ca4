package tokenizer

import (
	"encoding/json"
	"strings"
)

// decoder makes the stages that convert tokens to text. They are stateful, so each text has its own.
type decoder []func() stage

// stage is a running component of a decoder. It takes the texts of tokens one by one, and emits texts as soon as
// nothing that may follow can change them.
type stage interface {
	push(text string, emit func(string))
	flush(emit func(string)) // no token follows
}

// stageReader parses a component. fused says that the stage gets parts of one text, not one text for each token.
type stageReader func(raw json.RawMessage, fused bool) (func() stage, error)

// decoders are the parsers of the components of tokenizer.json.
var decoders = map[string]stageReader{
	"ByteLevel":    fixedDecoder(func() stage { return &bytesStage{} }),
	"ByteFallback": fixedDecoder(func() stage { return &byteFallbackStage{} }),
	"Fuse":         fixedDecoder(func() stage { return mapStage(func(s string) string { return s }) }),
	"Replace":      parsedWith(replaceDecoder),
	"Strip":        parsedWith(stripDecoder),
	"Metaspace":    parsedWith(metaspaceDecoder),
	"BPEDecoder":   parsedWith(bpeDecoder),
}

// fixedDecoder is the parser of a component without options.
func fixedDecoder(make func() stage) stageReader {
	return func(json.RawMessage, bool) (func() stage, error) { return make, nil }
}

func parseDecoder(raw json.RawMessage) (decoder, error) {
	if isNull(raw) {
		return decoder{func() stage { return &spacesStage{} }}, nil
	}
	var d decoder
	fused, growth := false, 1
	err := components(raw, "decoder", "decoders", decoders, func(part component, read stageReader) error {
		if growth *= part.growth(); growth > maxGrowth {
			return errGrowth
		}
		s, err := read(part.raw, fused)
		d = append(d, s)
		fused = fused || part.kind == "Fuse" || part.kind == "ByteLevel"
		return err
	})
	return d, err
}

// decoding is a running decoder.
type decoding struct {
	stages []stage
	out    strings.Builder
}

func (d decoder) start() *decoding {
	r := &decoding{}
	for _, s := range d {
		r.stages = append(r.stages, s())
	}
	return r
}

func (r *decoding) push(text string) { r.pass(0, text) }

func (r *decoding) pass(i int, text string) {
	if i == len(r.stages) {
		r.out.WriteString(text)
		return
	}
	r.stages[i].push(text, func(s string) { r.pass(i+1, s) })
}

func (r *decoding) flush() {
	for i, s := range r.stages {
		s.flush(func(s string) { r.pass(i+1, s) })
	}
}

// take returns the text that was decoded since the last call.
func (r *decoding) take() string {
	text := r.out.String()
	r.out.Reset()
	return text
}
