package tokenizer

import (
	"fmt"
	"slices"
)

// maxID bounds ids, so that a broken file cannot exhaust memory.
const maxID = 1 << 24

// maxHoles bounds the number of ids that a file may skip.
const maxHoles = 1 << 16

// setVocab makes the model, and fills the tables between ids and tokens. An added token that the model knows has the
// model's id; others get the next ids that are free, in the order of the file, whatever "id" says, as in the reference.
// If that would assign an id twice, because the model skips ids, the file's "id" counts.
func (t *Tokenizer) setVocab(m *modelFile, added []addedToken) error {
	vocab := m.vocab
	size := int32(len(m.pieces))
	for _, id := range vocab {
		size = max(size, id+1)
	}
	if int(size) > max(len(vocab), len(m.pieces))+maxHoles {
		return fmt.Errorf("model: ids go up to %d, but there are %d tokens", size-1, len(vocab))
	}
	added = slices.DeleteFunc(slices.Clone(added), func(a addedToken) bool { return a.Content == "" })
	ids, err := m.addedIDs(added)
	if err != nil {
		return err
	}
	for _, id := range ids {
		size = max(size, id+1)
	}
	t.texts = make([]string, size)
	t.known = make([]bool, size)
	for text, id := range vocab {
		if t.known[id] {
			return fmt.Errorf("model: %q and %q have the same id %d", min(text, t.texts[id]), max(text, t.texts[id]), id)
		}
		t.texts[id], t.known[id] = text, true
	}
	for id, p := range m.pieces { // of a repeated text, the last id counts
		t.texts[id], t.known[id] = p.text, true
	}
	if t.added, err = newAddedVocabulary(added, t.normalize); err != nil {
		return fmt.Errorf("added_tokens: %w", err)
	}
	if t.model, err = m.build(t.added.special); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	t.exact = t.model
	if m.makes(t.added.special) {
		if t.exact, err = m.build(nil); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	t.ids = vocab // the model does not see the additions below
	for text, id := range ids {
		t.ids[text], t.texts[id], t.known[id] = id, text, true
	}
	return nil
}

// addedIDs assigns ids to added tokens, and returns them by text.
func (f *modelFile) addedIDs(added []addedToken) (map[string]int32, error) {
	next, taken := int32(len(f.vocab)), make(map[int32]bool)
	limit := len(f.vocab) + len(added) + maxHoles
	for _, id := range f.vocab {
		if id >= next {
			taken[id] = true // those below next are never assigned
		}
	}
	ids := make(map[string]int32, len(added))
	for i := range added {
		a := &added[i]
		id, ok := ids[a.Content]
		if !ok {
			id, ok = f.vocab[a.Content]
		}
		if !ok {
			if id = next; taken[id] || f.keepIDs {
				id = a.ID
			}
			if id < 0 || int(id) > limit || taken[id] {
				return nil, fmt.Errorf("added token %q: its id %d is taken, or out of range", a.Content, id)
			}
		}
		taken[id] = true
		a.ID, ids[a.Content] = id, id
		next = max(next, id+1)
	}
	return ids, nil
}
