package grammar

import (
	"container/list"
	"sync"
)

// Cache keeps compiled grammars by vocabulary and grammar, the most recently used ones. It is safe for concurrent use;
// a grammar that several ask for at once is compiled once.
type Cache struct {
	size   int
	limits *Limits

	mu      sync.Mutex
	recent  *list.List // of *cacheEntry, the most recently used first
	entries map[cacheKey]*list.Element
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
	return &Cache{size: max(size, 1), limits: limits, recent: list.New(), entries: map[cacheKey]*list.Element{}}
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
	if element, ok := c.entries[key]; ok {
		c.recent.MoveToFront(element)
		return element.Value.(*cacheEntry)
	}
	entry := &cacheEntry{key: key}
	c.entries[key] = c.recent.PushFront(entry)
	if c.recent.Len() > c.size {
		last := c.recent.Remove(c.recent.Back()).(*cacheEntry)
		delete(c.entries, last.key)
	}
	return entry
}

// Len returns the number of grammars in the cache.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}
