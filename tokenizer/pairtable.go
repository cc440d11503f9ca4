package tokenizer

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
	count int
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

// slot returns the index of a key, or of the empty slot for it.
func (t *pairTable) slot(key uint64) int {
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.slots[i].key != key && t.slots[i].key != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

// put sets the merge of a pair. The table does not grow beyond its capacity.
func (t *pairTable) put(left, right int32, m merge) {
	key := pairKey(left, right)
	s := &t.slots[t.slot(key)]
	if s.key == 0 {
		t.count++
	}
	s.key, s.merge = key, m
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
