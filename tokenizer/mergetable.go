package tokenizer

// merge is what two neighbours become.
type merge struct {
	rank uint32 // the lowest is joined first
	id   int32  // of the joined token
}

// noRank is the rank of pairs that are not joined. Ranks of merges are below it.
const noRank = 1<<32 - 1

// pairTable maps pairs of ids to merges. It is a hash table with open addressing: a lookup touches one or two lines of
// memory, and it is what encoding spends its time on.
type pairTable struct {
	slots []pairSlot
	shift uint
	count int
}

type pairSlot struct {
	key uint64 // of the pair; 0 where nothing is
	merge
}

// pairKey is not 0.
func pairKey(left, right int32) uint64 { return (uint64(uint32(left))<<32 | uint64(uint32(right))) + 1 }

func newPairTable(capacity int) *pairTable {
	t := &pairTable{shift: 64 - 4}
	for 1<<(64-t.shift) < capacity+capacity/2 {
		t.shift--
	}
	t.slots = make([]pairSlot, 1<<(64-t.shift))
	return t
}

// slot returns where a key is, or where it would be.
func (t *pairTable) slot(key uint64) int {
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.slots[i].key != key && t.slots[i].key != 0 {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

// put sets the merge of a pair. The table has room for as many pairs as it was made for.
func (t *pairTable) put(left, right int32, m merge) {
	key := pairKey(left, right)
	s := &t.slots[t.slot(key)]
	if s.key == 0 {
		t.count++
	}
	s.key, s.merge = key, m
}

// get returns the merge of a pair; its rank is noRank when there is none.
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
