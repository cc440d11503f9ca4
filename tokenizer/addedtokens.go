package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is searched in a text before everything else.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // is not found inside a word
	LStrip     bool   `json:"lstrip"`      // includes the white space before it
	RStrip     bool   `json:"rstrip"`      // includes the white space after it
	Normalized bool   `json:"normalized"`  // is searched in the normalized text
	Special    bool   `json:"special"`
}

// addedVocabulary is the added tokens of a file.
type addedVocabulary struct {
	raw, normalized finder
	special         map[int32]bool
	byContent       map[string]int32
	shown           map[int32]string // what decoding writes for tokens, where it is not their content
}

// newAddedVocabulary takes tokens that have their ids. Of tokens with the same text, the first counts.
func newAddedVocabulary(tokens []addedToken, normalize func(string) string) (*addedVocabulary, error) {
	v := &addedVocabulary{special: map[int32]bool{}, byContent: map[string]int32{}, shown: map[int32]string{}}
	for _, a := range tokens {
		if _, twice := v.byContent[a.Content]; twice {
			continue
		}
		v.byContent[a.Content] = a.ID
		if a.Special {
			v.special[a.ID] = true
		}
		if a.Normalized {
			text := normalize(a.Content)
			v.normalized.add(text, a)
			if text != a.Content {
				v.shown[a.ID] = text
			}
		} else {
			v.raw.add(a.Content, a)
		}
	}
	if err := v.raw.build(); err != nil {
		return nil, err
	}
	return v, v.normalized.build()
}

// finder finds added tokens in a text: from left to right, the longest at each position. After all tokens are added,
// build must be called once.
type finder struct {
	patterns []pattern
	begins   [256]bool // the first bytes of the tokens
	trie     *trie     // text -> index in patterns; nil if there are none
}

type pattern struct {
	text  string
	token addedToken
}

func (f *finder) add(text string, token addedToken) {
	if text == "" {
		return
	}
	f.begins[text[0]] = true
	f.patterns = append(f.patterns, pattern{text, token})
}

// build indexes the tokens. Of tokens with the same text, the first counts.
func (f *finder) build() error {
	if !f.any() {
		return nil
	}
	var keys []trieKey
	for i, p := range slices.Backward(f.patterns) {
		keys = append(keys, trieKey{p.text, int32(i)})
	}
	var err error
	f.trie, err = newTrie(keys)
	return err
}

// any reports whether there are tokens.
func (f *finder) any() bool { return len(f.patterns) > 0 }

// split calls text for the pieces between added tokens, and token for each added token, in order.
func (f *finder) split(whole piece, text func(piece), token func(id int32, p piece)) {
	s := whole.text
	done := 0 // end of the last piece or token
	for i := 0; f.any() && i < len(s); {
		p := f.at(s, i)
		if p == nil {
			i++
			continue
		}
		start, end := i, i+len(p.text)
		i = end
		if p.token.SingleWord && (endsInWord(s[:start]) || startsWithWord(s[end:])) {
			continue
		}
		if p.token.LStrip {
			start = max(done, len(strings.TrimRightFunc(s[:start], unicode.IsSpace)))
		}
		if p.token.RStrip {
			end = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))
		}
		if done < start {
			text(whole.slice(done, start))
		}
		token(p.token.ID, whole.slice(start, end))
		done = end
	}
	if done < len(s) {
		text(whole.slice(done, len(s)))
	}
}

// matches is a matcher that cuts a text around the tokens.
func (f *finder) matches(s string, yield func(cut)) {
	f.split(piece{text: s}, func(p piece) {
		yield(cut{p.begin, p.begin + len(p.text), false})
	}, func(_ int32, p piece) {
		yield(cut{p.begin, p.begin + len(p.text), true})
	})
}

// at returns the longest token at an offset of the text, nil if there is none.
func (f *finder) at(s string, i int) *pattern {
	if !f.begins[s[i]] {
		return nil
	}
	if _, which := f.trie.longest(s[i:]); which != absent {
		return &f.patterns[which]
	}
	return nil
}

func endsInWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func startsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}
