package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// modelFile is the section "model" of tokenizer.json, of either kind.
type modelFile struct {
	kind            string
	options         modelOptions
	byBytes         bool             // BPE over bytes
	vocab           map[string]int32 // token as the file writes it -> id
	pieces          []vocabPiece     // of Unigram
	left, right     []string         // merges
	ranks           []uint32         // of merges; nil if they are in order
	idMerges        []idMerge        // merges by ids, in place of left, right and ranks
	hidden          func(int32) bool // ids that no text becomes; nil if these are the special tokens
	lowest          float64          // the lowest score, for that of unknown characters; 0 if it is that of all pieces
	singlePrecision bool             // scores are added in float32
	keepIDs         bool             // added tokens have ids already
}

// idMerge is a merge of two ids.
type idMerge struct {
	left, right int32
	merge
}

// modelOptions are the scalar fields of both kinds.
type modelOptions struct {
	Dropout         *float64 `json:"dropout"`
	UnkToken        *string  `json:"unk_token"`
	SubwordPrefix   string   `json:"continuing_subword_prefix"`
	EndOfWordSuffix string   `json:"end_of_word_suffix"`
	FuseUnk         bool     `json:"fuse_unk"`
	ByteFallback    bool     `json:"byte_fallback"`
	IgnoreMerges    bool     `json:"ignore_merges"`
	UnkID           *int32   `json:"unk_id"`
}

// parseModel reads a model. byteLevel says that its text is in the byte-level alphabet.
func parseModel(raw string, byteLevel bool) (*modelFile, error) {
	if raw == "" || raw == "null" {
		return nil, errors.New("it is missing")
	}
	members, err := object(raw)
	if err != nil {
		return nil, err
	}
	f := &modelFile{}
	if f.kind, err = kindOf(members); err != nil {
		return nil, err
	}
	vocab, merges := members["vocab"], members["merges"]
	delete(members, "vocab")
	delete(members, "merges")
	if err := f.readOptions(members); err != nil {
		return nil, err
	}
	if f.kind == "Unigram" {
		return f, f.readPieces(vocab)
	}
	if d := f.options.Dropout; d != nil && *d != 0 {
		return nil, errors.New("dropout is not supported: it makes ids random; set it to null")
	}
	f.byBytes = byteLevel && f.options.SubwordPrefix == "" && f.options.EndOfWordSuffix == ""
	f.vocab = make(map[string]int32, len(vocab)/24)
	r := &jsonReader{data: vocab}
	r.members(func(text string) {
		if _, twice := f.vocab[text]; twice {
			r.fail("token %q is repeated", text)
		}
		f.vocab[strings.Clone(text)] = r.id()
	})
	if err := r.end("vocab: "); err != nil {
		return nil, err
	}
	return f, f.readMerges(merges)
}

// readOptions reads the scalar fields.
func (f *modelFile) readOptions(members map[string]string) error {
	raw := map[string]json.RawMessage{}
	for name, value := range members {
		raw[name] = json.RawMessage(value)
	}
	small, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(small, &f.options)
}

// kindOf returns the type of a model. Old files omit it: those with a list of pieces are Unigram, those with a
// vocabulary and merges BPE.
func kindOf(members map[string]string) (string, error) {
	_, merges := members["merges"]
	_, typed := members["type"]
	kind := "BPE"
	switch {
	case typed:
		if err := json.Unmarshal(member(members, "type"), &kind); err != nil {
			return "", err
		}
	case strings.HasPrefix(strings.TrimSpace(members["vocab"]), "["):
		kind = "Unigram"
	case !merges:
		return "", errors.New(`it has no "type", no "merges" as BPE has, and its "vocab" is not a list as that of Unigram: ` +
			"WordPiece and WordLevel are not supported")
	}
	if kind != "BPE" && kind != "Unigram" {
		return "", fmt.Errorf("%q is not supported, only BPE and Unigram", kind)
	}
	return kind, nil
}

// readMerges reads merges, each "a b" or ["a", "b"].
func (f *modelFile) readMerges(raw string) error {
	r := &jsonReader{data: raw}
	f.left, f.right = make([]string, 0, len(raw)/20), make([]string, 0, len(raw)/20)
	r.elements(func() {
		if r.peek() == '"' {
			text := r.text()
			left, right, ok := strings.Cut(text, " ")
			if !ok || strings.Contains(right, " ") {
				r.fail("merge %q must have two parts", text)
			}
			f.left, f.right = append(f.left, left), append(f.right, right)
			return
		}
		var parts [2]string
		n := 0
		r.elements(func() {
			parts[n%2] = r.text()
			n++
		})
		if n != 2 {
			r.fail("a merge must have two parts, not %d", n)
		}
		f.left, f.right = append(f.left, parts[0]), append(f.right, parts[1])
	})
	return r.end("merges: ")
}

// readPieces reads the vocabulary of Unigram: a list of [text, score].
func (f *modelFile) readPieces(raw string) error {
	r := &jsonReader{data: raw}
	f.vocab = map[string]int32{}
	r.elements(func() {
		var p vocabPiece
		n := 0
		r.elements(func() {
			switch n++; n {
			case 1:
				p.text = strings.Clone(r.text())
			case 2:
				p.score = r.number()
			default:
				r.fail("a piece must have a text and a score")
			}
		})
		if n != 2 {
			r.fail("a piece must have a text and a score")
		}
		f.vocab[p.text] = int32(len(f.pieces))
		f.pieces = append(f.pieces, p)
	})
	if err := r.end("vocab: "); err != nil {
		return err
	}
	if len(f.pieces) > maxID {
		return fmt.Errorf("vocab has more than %d pieces", maxID)
	}
	return nil
}
