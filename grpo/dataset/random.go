package dataset

import "math/rand/v2"

// Random numbers are those that package art had when streams were part of it: stored positions go on where they were.
// TestStream_OrderOfBatches holds the order of files against that of [art.Batches].

// seedShuffle is the purpose of the seeds of this package, among those of package art.
const seedShuffle uint64 = 7

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(mix(seed, 1), mix(seed, 2))) }

// mix hashes a sequence of numbers. Sequences that differ in an element, in order or in length give unrelated results.
func mix(path ...uint64) uint64 {
	h := uint64(len(path))
	for _, x := range path {
		h = scramble(h ^ scramble(x))
	}
	return h
}

// scramble is the output function of SplitMix64 (Steele, Lea, Flood 2014) after one step of its counter.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
