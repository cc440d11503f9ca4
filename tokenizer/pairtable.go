package tokenizer

import "hash/maphash"

// merge is the result of merging an adjacent pair.
type merge struct {
	rank uint32 // the lowest is merged first
	id   int32  // of the merged token
}

// noRank is the rank of pairs that do not merge. Ranks of merges are below it.
const noRank = 1<<32 - 1

// pairTable maps pairs of ids to merges. It is a hash table with open addressing: a lookup touches one or two cache
// lines, and encoding spends most of its time on lookups.
type pairTable struct {
	slots []pairSlot
	shift uint
}

type pairSlot struct {
	key uint64 // of the pair; 0 if the slot is empty
	merge
}

// pairKey returns the key of a pair, which is never 0.
func pairKey(left, right int32) uint64 { return (uint64(uint32(left))<<32 | uint64(uint32(right))) + 1 }

func newPairTable(capacity int) *pairTable {
	t := &pairTable{shift: 64 - 4}
	for 1<<(64-t.shift) < capacity+capacity/2 {
		t.shift--
	}
	t.slots = make([]pairSlot, 1<<(64-t.shift))
	return t
}

// put sets the merge of a pair. The table does not grow beyond its capacity.
func (t *pairTable) put(left, right int32, m merge) {
	key := pairKey(left, right)
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.slots[i].key != key && t.slots[i].key != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = pairSlot{key, m}
}

// get returns the merge of a pair; its rank is noRank if there is none.
func (t *pairTable) get(left, right int32) merge {
	key := pairKey(left, right)
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for {
		s := &t.slots[i]
		if s.key == key {
			return s.merge
		}
		if s.key == 0 {
			return merge{rank: noRank}
		}
		i = (i + 1) & (len(t.slots) - 1)
	}
}

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
