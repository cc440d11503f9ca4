package tokenizer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// pieceKind is the type of a piece, as SentencePiece and GGUF number it.
type pieceKind int32

const (
	normalPiece  pieceKind = 1
	unknownPiece pieceKind = 2
	controlPiece pieceKind = 3
	userPiece    pieceKind = 4
	unusedPiece  pieceKind = 5
	bytePiece    pieceKind = 6
)

// spModel is a SentencePiece model, from its own file or from GGUF.
type spModel struct {
	pieces          []vocabPiece
	kinds           []pieceKind
	bpe             bool // not Unigram
	byteFallback    bool
	singlePrecision bool // scores are added in float32, as SentencePiece does
	bos, eos        int32
	addBOS          bool
	addEOS          bool
	perPart         bool // text after a special token is a text of its own, with a space prepended
	normalizer      spNormalizer
}

// FromSentencePiece builds a tokenizer from the contents of a SentencePiece model file (tokenizer.model), BPE or
// Unigram. [Tokenizer.EncodeOrdinary] gives the ids of SentencePiece's own library. [Tokenizer.Encode] recognises
// control tokens too, which that library does not; special prepends the beginning-of-sequence token, if the file has
// one. Decoding is that of Hugging Face's conversions: the unknown token is written as it is, and one space at the
// beginning is dropped.
func FromSentencePiece(data []byte) (*Tokenizer, error) {
	m, err := parseSentencePiece(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: SentencePiece model: %w", err)
	}
	t, err := m.build()
	if err != nil {
		return nil, fmt.Errorf("tokenizer: SentencePiece model: %w", err)
	}
	return t, nil
}

// parseSentencePiece parses a ModelProto; the field numbers are those of sentencepiece_model.proto.
func parseSentencePiece(data []byte) (*spModel, error) {
	m := &spModel{
		singlePrecision: true, bos: 1, eos: 2,
		normalizer: spNormalizer{dummyPrefix: true, trim: true, escape: true},
	}
	err := fields(data, func(field int, _ uint64, data []byte) error {
		switch field {
		case 1:
			return m.readPiece(data)
		case 2:
			return m.readTrainer(data)
		case 3:
			return m.readNormalizer(data)
		}
		return nil
	})
	m.addBOS = m.bos >= 0 && int(m.bos) < len(m.pieces) && m.kinds[m.bos] == controlPiece
	return m, err
}

func (m *spModel) readPiece(data []byte) error {
	p, kind := vocabPiece{}, normalPiece
	err := fields(data, func(field int, number uint64, data []byte) error {
		switch field {
		case 1:
			p.text = string(data)
		case 2:
			p.score = float64(math.Float32frombits(uint32(number)))
		case 3:
			kind = pieceKind(number)
		}
		return nil
	})
	m.pieces, m.kinds = append(m.pieces, p), append(m.kinds, kind)
	return err
}

func (m *spModel) readTrainer(data []byte) error {
	return fields(data, func(field int, number uint64, _ []byte) error {
		switch field {
		case 3:
			m.bpe = number == 2
			if number != 1 && number != 2 {
				return fmt.Errorf("model type %d is not supported, only Unigram (1) and BPE (2)", number)
			}
		case 24:
			if number != 0 {
				return errors.New("treat_whitespace_as_suffix is not supported")
			}
		case 35:
			m.byteFallback = number != 0
		case 41:
			m.bos = int32(number)
		case 42:
			m.eos = int32(number)
		}
		return nil
	})
}

func (m *spModel) readNormalizer(data []byte) error {
	return fields(data, func(field int, number uint64, data []byte) error {
		var err error
		switch field {
		case 2:
			if len(data) > 0 {
				m.normalizer.chars, err = parseCharsMap(data)
			}
		case 3:
			m.normalizer.dummyPrefix = number != 0
		case 4:
			m.normalizer.trim = number != 0
		case 5:
			m.normalizer.escape = number != 0
		}
		return err
	})
}

// build makes the tokenizer.
func (m *spModel) build() (*Tokenizer, error) {
	if len(m.pieces) == 0 {
		return nil, errors.New("it has no pieces")
	}
	f := &modelFile{kind: "Unigram", pieces: m.pieces, vocab: map[string]int32{}}
	f.options.ByteFallback, f.singlePrecision = m.byteFallback, m.singlePrecision
	var added []addedToken
	for id, p := range m.pieces {
		if _, twice := f.vocab[p.text]; twice || p.text == "" || !utf8.ValidString(p.text) {
			return nil, fmt.Errorf("piece %d, %q, is empty, not UTF-8, or repeated", id, p.text)
		}
		f.vocab[p.text] = int32(id)
		switch kind := m.kinds[id]; kind {
		case unknownPiece:
			if f.options.UnkToken == nil {
				f.options.UnkToken, f.options.UnkID = &p.text, new(int32(id))
			}
		case controlPiece:
			added = append(added, addedToken{ID: int32(id), Content: p.text, Special: true})
		case userPiece:
			m.normalizer.keep.add(p.text, addedToken{ID: int32(id)})
		case normalPiece, unusedPiece, bytePiece:
		default:
			return nil, fmt.Errorf("piece %d, %q, has the unknown type %d", id, p.text, kind)
		}
	}
	if err := m.normalizer.keep.build(); err != nil {
		return nil, err
	}
	if m.bpe {
		f.kind, f.options.FuseUnk = "BPE", true
		m.setMerges(f)
	} else {
		m.setScores(f)
	}
	return m.finish(f, added)
}

// finish assembles the tokenizer.
func (m *spModel) finish(f *modelFile, added []addedToken) (*Tokenizer, error) {
	t := &Tokenizer{normalizers: []normalizer{m.normalizer.normalize}}
	if err := t.setVocab(f, added); err != nil {
		return nil, err
	}
	if model, ok := t.model.(*bpe); ok && m.normalizer.keep.any() {
		t.steps = []step{cutStep{find: m.normalizer.keep.matches}}
		model.whole = newWordTable(len(m.pieces)) // text is split around the user-defined pieces
		for id, p := range m.pieces {
			if m.kinds[id] == userPiece {
				model.whole.put(p.text, int32(id))
			}
		}
	}
	t.decoder = decoder{ // as in Hugging Face's conversions
		func() stage {
			return mapStage(func(s string) string { return strings.ReplaceAll(s, string(metaspaceRune), " ") })
		},
		func() stage { return &byteFallbackStage{} },
	}
	if m.normalizer.dummyPrefix {
		t.decoder = append(t.decoder, func() stage { return &stripStage{content: " ", start: 1, fused: true} })
	}
	t.setDecoding()
	return t, t.setEnds(m.bos, m.eos, m.addBOS, m.addEOS)
}

// setEnds sets the tokens for the beginning and the end of a sequence, each absent if there is none, and whether
// encoding adds them.
func (t *Tokenizer) setEnds(bos, eos int32, addBOS, addEOS bool) (err error) {
	var before, after []int32
	if t.valid(bos) {
		t.bos = []int32{bos}
	}
	if t.valid(eos) {
		t.eos = []int32{eos}
	}
	if addBOS {
		before = t.bos
	}
	if addEOS {
		after = t.eos
	}
	t.processors, err = wrapping(before, after, t.valid)
	return err
}

// found reports whether text can become a piece.
func (m *spModel) found(id int32) bool {
	k := m.kinds[id]
	return k == normalPiece || k == userPiece && !m.bpe || k == unusedPiece && m.bpe
}

// setScores hides the pieces that text cannot become, and gives user-defined pieces scores above all log probabilities.
func (m *spModel) setScores(f *modelFile) {
	f.lowest = math.Inf(1)
	f.pieces = slices.Clone(m.pieces)
	for id := range f.pieces {
		switch p := &f.pieces[id]; m.kinds[id] {
		case normalPiece:
			f.lowest = min(f.lowest, p.score)
		case userPiece:
			p.score = float64(float32(0.1 * float64(len(p.text)-1)))
		}
	}
	f.hidden = func(id int32) bool { return !m.found(id) }
}

// setMerges lists the merges that scores imply: any two pieces whose concatenation is a piece can be merged, those with
// the highest score first, and the leftmost of those with equal scores.
func (m *spModel) setMerges(f *modelFile) {
	ids := make([]int32, 0, len(m.pieces))
	for id := range m.pieces {
		if m.found(int32(id)) && m.kinds[id] != unusedPiece {
			ids = append(ids, int32(id))
		}
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(m.pieces[b].score, m.pieces[a].score) })
	f.left = []string{}
	rank := uint32(0)
	for i, id := range ids {
		if i > 0 && m.pieces[id].score != m.pieces[ids[i-1]].score {
			rank++
		}
		text := m.pieces[id].text
		for at := range text {
			l, ok1 := f.vocab[text[:at]]
			r, ok2 := f.vocab[text[at:]]
			if ok1 && ok2 && m.found(l) && m.found(r) {
				f.left, f.right, f.ranks = append(f.left, text[:at]), append(f.right, text[at:]), append(f.ranks, rank)
			}
		}
	}
	f.hidden = func(id int32) bool { return !m.found(id) }
}

// fields calls yield for the fields of a message in protobuf's wire format: with number for varints and fixed-size
// values, with data for length-delimited ones. Nested messages are data: SentencePiece files have only a few kinds.
func fields(message []byte, yield func(field int, number uint64, data []byte) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return errBroken
		}
		message = message[n:]
		var number uint64
		var data []byte
		size := 0
		switch tag & 7 {
		case 0:
			if number, size = binary.Uvarint(message); size <= 0 {
				return errBroken
			}
		case 1:
			if size = 8; len(message) >= size {
				number = binary.LittleEndian.Uint64(message)
			}
		case 2:
			length, n := binary.Uvarint(message)
			if n <= 0 || length > uint64(len(message)-n) {
				return errBroken
			}
			size = n + int(length)
			data = message[n:size]
		case 5:
			if size = 4; len(message) >= size {
				number = uint64(binary.LittleEndian.Uint32(message))
			}
		default:
			return errBroken
		}
		if size > len(message) {
			return errBroken
		}
		if err := yield(int(tag>>3), number, data); err != nil {
			return err
		}
		message = message[size:]
	}
	return nil
}

var errBroken = errors.New("it is not a protobuf message, or it is truncated")
