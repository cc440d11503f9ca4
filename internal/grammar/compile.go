package grammar

import "sync"

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
	defer catchLimit(&err)
	if limits == nil {
		limits = &Limits{}
	}
	c := newCompilation(v, &budget{limits: limits.withDefaults()})
	root := c.newRule()
	f, err := g.fragment(c)
	if err != nil {
		return nil, err
	}
	c.define(root, f)
	p, err := link(c.rules, root, &v.writable)
	if err != nil {
		return nil, err
	}
	m := newMachine(p)
	return &Compiled{vocabulary: v, begin: m.begin(root), machine: m, statics: make([]*static, len(p.states))}, nil
}

// Vocabulary returns what the grammar was compiled for.
func (c *Compiled) Vocabulary() *Vocabulary { return c.vocabulary }

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
