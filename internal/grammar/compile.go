package grammar

import (
	"fmt"
	"slices"
	"sync"
)

// Bounds of what a compiled grammar keeps of what it has computed. When one is exceeded it forgets all and goes on.
const (
	maxConfigs = 20_000
	maxKept    = 64 << 20 // bytes of masks
)

// Compiled is a grammar that is ready to be matched. It is safe for concurrent use; the masks that one matcher computes
// serve all.
type Compiled struct {
	vocabulary *Vocabulary

	mu         sync.Mutex
	machine    *machine
	begin      *config
	statics    []*static // by state
	kept       int       // bytes of masks
	generation int       // how often everything was forgotten
	path       []*config // scratch of walk
}

// Compile makes a grammar ready for a vocabulary. Errors name the keyword, pattern or limit that is the cause; a limit
// is a *LimitError. Nil limits are the defaults.
func Compile(g Grammar, v *Vocabulary, limits *Limits) (compiled *Compiled, err error) {
	defer catch(&err)
	if limits == nil {
		limits = &Limits{}
	}
	c := newCompilation(v, &budget{limits: limits.withDefaults()})
	root := c.newRule()
	c.define(root, g.fragment(c))
	p, err := link(c.rules, root, &v.writable)
	if err != nil {
		return nil, err
	}
	m := newMachine(p)
	return &Compiled{vocabulary: v, begin: m.begin(root), machine: m, statics: make([]*static, len(p.states))}, nil
}

// Matcher returns a matcher at the beginning of a text.
func (c *Compiled) Matcher() *Matcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Matcher{compiled: c, at: c.begin, generation: c.generation}
}

// trim forgets what was computed when it has become too much. The caller holds the lock.
func (c *Compiled) trim() {
	if len(c.machine.configs) < maxConfigs && c.kept < maxKept {
		return
	}
	c.machine.reset()
	c.begin = c.machine.adopt(c.begin)
	c.statics = make([]*static, len(c.statics))
	c.kept = 0
	c.generation++
}

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
	s := m.compiled.maskOf(m.at)
	if s.bits != nil || len(s.ids) != 1 {
		return 0, false
	}
	return s.ids[0], true
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

// Cache keeps compiled grammars by vocabulary and grammar, the most recently used ones. It is safe for concurrent use;
// a grammar that several ask for at once is compiled once.
type Cache struct {
	size   int
	limits *Limits

	mu      sync.Mutex
	entries []*cacheEntry // the most recently used last
}

// cacheKey identifies a compiled grammar. Vocabularies are compared by identity.
type cacheKey struct {
	vocabulary *Vocabulary
	grammar    string
}

type cacheEntry struct {
	key      cacheKey
	once     sync.Once
	compiled *Compiled
	err      error
}

// NewCache returns a cache of up to size grammars, at least one, compiled within limits. Nil limits are the defaults.
func NewCache(size int, limits *Limits) *Cache {
	return &Cache{size: max(size, 1), limits: limits}
}

// Compile returns the compiled grammar, from the cache if it is there. Errors are kept as well.
func (c *Cache) Compile(g Grammar, v *Vocabulary) (*Compiled, error) {
	entry := c.entry(cacheKey{v, g.key()})
	entry.once.Do(func() { entry.compiled, entry.err = Compile(g, v, c.limits) })
	return entry.compiled, entry.err
}

// entry returns the entry of a key, and drops the least recently used one for a new one.
func (c *Cache) entry(key cacheKey) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := &cacheEntry{key: key}
	if i := slices.IndexFunc(c.entries, func(e *cacheEntry) bool { return e.key == key }); i >= 0 {
		entry = c.entries[i]
		c.entries = slices.Delete(c.entries, i, i+1)
	} else if len(c.entries) == c.size {
		c.entries = slices.Delete(c.entries, 0, 1)
	}
	c.entries = append(c.entries, entry)
	return entry
}

// Len returns the number of grammars in the cache.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}
