package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
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

// mapStage changes the text of each token by itself.
type mapStage func(string) string

func (m mapStage) push(text string, emit func(string)) { emit(m(text)) }
func (mapStage) flush(func(string))                    {}

// spacesStage puts a space between tokens: what happens without a decoder.
type spacesStage struct{ started bool }

func (s *spacesStage) push(text string, emit func(string)) {
	if s.started {
		text = " " + text
	}
	s.started = true
	emit(text)
}
func (*spacesStage) flush(func(string)) {}

// bytesStage joins the bytes that tokens spell, and emits whole characters. Bytes that are not UTF-8 become U+FFFD.
type bytesStage struct{ held []byte }

func (s *bytesStage) push(text string, emit func(string)) {
	start := len(s.held)
	for _, r := range text {
		b, ok := byteOf(r)
		if !ok { // an added token: it stands for itself
			s.held = append(s.held[:start], text...)
			break
		}
		s.held = append(s.held, b)
	}
	valid, rest := appendValid(nil, s.held)
	s.held = append(s.held[:0], rest...)
	emit(string(valid))
}

func (s *bytesStage) flush(emit func(string)) {
	if len(s.held) > 0 {
		emit(string(utf8.RuneError))
	}
	s.held = nil
}

// byteFallbackStage joins the bytes of tokens like "<0x0A>" that follow one another. When they are not UTF-8, each of
// them becomes U+FFFD, so nothing is known before another token comes.
type byteFallbackStage struct{ held []byte }

func parseByteFallback(json.RawMessage, bool) (func() stage, error) {
	return func() stage { return &byteFallbackStage{} }, nil
}

func (s *byteFallbackStage) push(text string, emit func(string)) {
	if b, ok := fallbackByte(text); ok {
		s.held = append(s.held, b)
		return
	}
	s.flush(emit)
	emit(text)
}

func (s *byteFallbackStage) flush(emit func(string)) {
	switch {
	case len(s.held) == 0:
		return
	case utf8.Valid(s.held):
		emit(string(s.held))
	default:
		for range s.held {
			emit(string(utf8.RuneError))
		}
	}
	s.held = s.held[:0]
}

// fallbackByte reads "<0x0A>".
func fallbackByte(text string) (byte, bool) {
	if len(text) != 6 || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(b), err == nil
}

func parseReplaceDecoder(raw json.RawMessage, fused bool) (func() stage, error) {
	var c struct {
		Pattern patternFile `json:"pattern"`
		Content string      `json:"content"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	find, err := c.Pattern.matcher()
	if err != nil {
		return nil, err
	}
	if fused && (c.Pattern.String == nil || utf8.RuneCountInString(*c.Pattern.String) > 1) {
		return nil, errors.New("behind Fuse, only one character can be replaced")
	}
	return func() stage {
		return mapStage(func(s string) string { return piece{text: s}.replaced(find, c.Content).text })
	}, nil
}

// stripStage drops up to start and stop of one character from the ends of the text, or of each token.
type stripStage struct {
	content     string
	start, stop int
	fused       bool
	dropped     int
	begun       bool // something else than the character has come
	held        int  // how many of the character are at the end so far
}

func parseStripDecoder(raw json.RawMessage, fused bool) (func() stage, error) {
	var c struct {
		Content     string `json:"content"`
		Start, Stop int
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(c.Content) != 1 || c.Start < 0 || c.Stop < 0 {
		return nil, errors.New("it needs one character as content, and numbers from 0 on as start and stop")
	}
	return func() stage { return &stripStage{content: c.Content, start: c.Start, stop: c.Stop, fused: fused} }, nil
}

func (s *stripStage) push(text string, emit func(string)) {
	if !s.fused {
		emit(s.trim(text))
		return
	}
	for !s.begun && s.dropped < s.start && strings.HasPrefix(text, s.content) {
		text = text[len(s.content):]
		s.dropped++
	}
	s.begun = s.begun || text != ""
	if s.stop == 0 {
		emit(text)
		return
	}
	text = strings.Repeat(s.content, s.held) + text
	s.held = 0
	for s.held < s.stop && strings.HasSuffix(text, s.content) {
		text = text[:len(text)-len(s.content)]
		s.held++
	}
	emit(text)
}

func (s *stripStage) flush(func(string)) {}

// trim strips the text of one token.
func (s *stripStage) trim(text string) string {
	for i := 0; i < s.start && strings.HasPrefix(text, s.content); i++ {
		text = text[len(s.content):]
	}
	for i := 0; i < s.stop && strings.HasSuffix(text, s.content); i++ {
		text = text[:len(text)-len(s.content)]
	}
	return text
}

// metaspaceStage writes the replacement as a space, and drops it from the first token.
type metaspaceStage struct {
	replacement string
	drop        bool
}

func parseMetaspaceDecoder(raw json.RawMessage, _ bool) (func() stage, error) {
	m, err := parseMetaspace(raw)
	if err != nil {
		return nil, err
	}
	return func() stage { return &metaspaceStage{m.replacement, m.scheme != prependNever} }, nil
}

func (s *metaspaceStage) push(text string, emit func(string)) {
	space := " "
	if s.drop {
		space, s.drop = "", false
	}
	emit(strings.ReplaceAll(text, s.replacement, space))
}

func (*metaspaceStage) flush(func(string)) {}

// suffixStage writes the end of a word as a space, and drops it at the end of the text.
type suffixStage struct {
	suffix string
	held   string
	some   bool
}

func parseBPEDecoder(raw json.RawMessage, _ bool) (func() stage, error) {
	c := struct {
		Suffix string `json:"suffix"`
	}{"</w>"}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if c.Suffix == "" {
		return nil, errors.New("suffix is empty")
	}
	return func() stage { return &suffixStage{suffix: c.Suffix} }, nil
}

func (s *suffixStage) push(text string, emit func(string)) {
	if s.some {
		emit(strings.ReplaceAll(s.held, s.suffix, " "))
	}
	s.held, s.some = text, true
}

func (s *suffixStage) flush(emit func(string)) {
	if s.some {
		emit(strings.ReplaceAll(s.held, s.suffix, ""))
	}
	s.some = false
}
