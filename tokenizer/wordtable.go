package tokenizer

import "hash/maphash"

// wordTable maps texts to ids. It is a hash table with open addressing, which is much faster to fill than a map.
type wordTable struct {
	seed  maphash.Seed
	slots []wordSlot
}

type wordSlot struct {
	text string
	id   int32
	used bool
}

func newWordTable(capacity int) *wordTable {
	size := 16
	for size < capacity+capacity/2 {
		size *= 2
	}
	return &wordTable{seed: maphash.MakeSeed(), slots: make([]wordSlot, size)}
}

func (t *wordTable) slot(text string) *wordSlot {
	mask := uint64(len(t.slots) - 1) // a power of two
	i := maphash.String(t.seed, text) & mask
	for t.slots[i].used && t.slots[i].text != text {
		i = (i + 1) & mask
	}
	return &t.slots[i]
}

// put sets the id of a text. The table does not grow beyond its capacity.
func (t *wordTable) put(text string, id int32) { *t.slot(text) = wordSlot{text, id, true} }

// get returns the id of a text; a nil table has none.
func (t *wordTable) get(text string) (int32, bool) {
	if t == nil {
		return 0, false
	}
	s := t.slot(text)
	return s.id, s.used
}
