package world

import "math/bits"

// Convention is a set of rules that hold in every database and that no schema tells.
type Convention uint8

// The conventions.
const (
	// Cents: amounts are in cents, and questions ask for euros.
	Cents Convention = 1 << iota
	// Cancelled events do not count.
	Cancelled
	// Deleted people do not count, nor does what they did, where a question speaks of people.
	Deleted
)

// Len is the number of rules in the set.
func (c Convention) Len() int { return bits.OnesCount8(uint8(c)) }

// has reports whether all rules of a set are in c.
func (c Convention) has(set Convention) bool { return c&set == set }

// subsets returns the sets of rules within c, the empty one first.
func (c Convention) subsets() []Convention {
	out := []Convention{0}
	for rule := Cents; rule <= Deleted; rule <<= 1 {
		if c.has(rule) {
			for _, set := range out {
				out = append(out, set|rule)
			}
		}
	}
	return out
}
