package grammar

import "fmt"

// Matcher is the state of one sequence. It is for one goroutine.
type Matcher struct {
	compiled   *Compiled
	at         *config
	ended      bool // an end-of-sequence token was accepted
	generation int  // that of compiled when at was computed
}

// lock locks the compiled grammar, and lets go of configurations that it has forgotten.
func (m *Matcher) lock() (unlock func()) {
	c := m.compiled
	c.mu.Lock()
	c.trim()
	if m.generation != c.generation {
		m.at, m.generation = c.machine.adopt(m.at), c.generation
	}
	return c.mu.Unlock
}

// Clone returns a matcher in the same state.
func (m *Matcher) Clone() *Matcher {
	clone := *m
	return &clone
}

// Mask sets the bits of the ids that may come next and clears all others: id i is bit i%32 of word i/32. dst has at
// least MaskWords words; it panics otherwise. Before the end at least one id is allowed, after it none is.
func (m *Matcher) Mask(dst []uint32) {
	dst = dst[:m.compiled.vocabulary.MaskWords()]
	clear(dst)
	if m.ended {
		return
	}
	defer m.lock()()
	m.compiled.maskOf(m.at).addTo(dst)
}

// Accept goes on by one token. If the token is not allowed it returns an error, and the state is as before.
func (m *Matcher) Accept(id int32) error {
	v := m.compiled.vocabulary
	switch {
	case m.ended:
		return fmt.Errorf("grammar: token %d after the end of the sequence", id)
	case id < 0 || int(id) >= len(v.tokens):
		return fmt.Errorf("grammar: token %d is outside the vocabulary of %d", id, len(v.tokens))
	case v.isEnd[id]:
		if !m.at.end {
			return fmt.Errorf("grammar: token %d ends the sequence, but the text is not complete", id)
		}
		m.ended = true
		return nil
	}
	defer m.lock()()
	next := m.compiled.follow(m.at, id)
	if next == dead {
		return fmt.Errorf("grammar: token %d (%q) is not allowed here", id, v.tokens[id])
	}
	m.at = next
	return nil
}

// follow returns the configuration after a token, read as text or as a whole.
func (c *Compiled) follow(at *config, id int32) *config {
	whole := c.machine.stepToken(at, id)
	text := c.vocabulary.tokens[id]
	if len(text) == 0 {
		return whole
	}
	for _, b := range text {
		at = c.machine.step(at, b)
	}
	return c.machine.union(whole, at)
}

// Finished reports whether the text may end here, or has ended.
func (m *Matcher) Finished() bool { return m.ended || m.at.end }

// Ended reports whether an end-of-sequence token was accepted.
func (m *Matcher) Ended() bool { return m.ended }

// Forced returns the id that comes next if only one may. A sampler then has nothing to choose, and training leaves the
// token out.
func (m *Matcher) Forced() (id int32, ok bool) {
	if m.ended {
		return 0, false
	}
	defer m.lock()()
	return m.compiled.maskOf(m.at).single()
}

// ForcedText returns the longest text with which every continuation begins. It is empty where the text may end, and
// where a control token may come. Several tokens may spell it, so its tokens are not forced; a caller may choose the
// spelling that its tokenizer prefers.
func (m *Matcher) ForcedText() []byte {
	defer m.lock()()
	var text []byte
	for at := m.at; !m.ended; {
		b, ok := m.compiled.onlyByte(at)
		if !ok {
			return text
		}
		text = append(text, b)
		at = m.compiled.machine.step(at, b)
	}
	return text
}

// onlyByte returns the byte with which every continuation begins.
func (c *Compiled) onlyByte(at *config) (byte, bool) {
	if at.end || len(at.items) == 0 {
		return 0, false
	}
	only := -1
	for _, it := range at.items {
		state := &c.machine.program.states[it.state]
		if len(state.tokens) > 0 {
			return 0, false
		}
		for _, e := range state.bytes {
			if e.lo != e.hi || only >= 0 && only != int(e.lo) {
				return 0, false
			}
			only = int(e.lo)
		}
	}
	return byte(only), true
}
