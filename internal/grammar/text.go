package grammar

// freeText is valid UTF-8 that contains none of the stops.
func freeText(stops []string, b *budget) fragment {
	utf8 := repeat(runes(anyRune), 0, -1)
	if len(stops) == 0 {
		return utf8
	}
	return intersect(b, build(utf8, b), stopFree(stops, b)).fragment
}

// stopFree is the automaton of Aho and Corasick (1975) without the edges that complete a stop: its states are the
// prefixes of stops, the longest that ends the text so far.
func stopFree(stops []string, b *budget) *dfa {
	prefixes, ids := stopPrefixes(stops)
	result := &dfa{}
	for _, prefix := range prefixes {
		b.addState()
		state := dfaState{final: true}
		for c := range 256 {
			b.spend(len(prefix) + 1)
			if to, ok := longestPrefix(prefix+string([]byte{byte(c)}), ids); ok {
				state.bytes = append(state.bytes, byteEdge{byte(c), byte(c), to})
			}
		}
		result.states = append(result.states, state)
	}
	return result
}

// stopPrefixes returns the proper prefixes of stops, the empty one first, and the state of each; -1 stands for a stop.
func stopPrefixes(stops []string) ([]string, map[string]int32) {
	prefixes, ids := []string{""}, map[string]int32{"": 0}
	for _, stop := range stops {
		for n := 1; n < len(stop); n++ {
			if _, ok := ids[stop[:n]]; !ok {
				ids[stop[:n]] = int32(len(prefixes))
				prefixes = append(prefixes, stop[:n])
			}
		}
	}
	for _, stop := range stops {
		ids[stop] = -1
	}
	return prefixes, ids
}

// longestPrefix returns the state of the longest suffix that is a prefix of a stop, unless a suffix is a stop.
func longestPrefix(text string, ids map[string]int32) (int32, bool) {
	state := int32(-1)
	for n := 0; n <= len(text); n++ {
		switch id, ok := ids[text[n:]]; {
		case ok && id < 0:
			return 0, false
		case ok && state < 0:
			state = id
		}
	}
	return state, true
}
