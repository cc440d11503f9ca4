package art

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// setDefaults fills in what is empty.
func (o *ModelOptions) setDefaults() {
	o.Project = cmp.Or(o.Project, "default")
	o.Base = cmp.Or(o.Base, "tiny")
	if o.Adapter == "" && o.Fork == "" {
		o.LoRA.setDefaults()
	}
}

// setDefaults fills in what is empty, but for Targets: which layers there are is the backend's to know.
func (l *LoRA) setDefaults() {
	l.Rank = cmp.Or(l.Rank, 8)
	l.Alpha = cmp.Or(l.Alpha, 2*float64(l.Rank))
}

// clone returns a deep copy.
func (o ModelOptions) clone() ModelOptions {
	o.LoRA.Targets = slices.Clone(o.LoRA.Targets)
	o.Chat = o.Chat.clone()
	o.Retention = clonePtr(o.Retention)
	return o
}

// validate lists everything that is wrong with the description of the model.
func (m *Model) validate(b Backend) error {
	var p problems
	p.check(b != nil, "backend is nil")
	p.folderName("name", m.name)
	p.folderName("project", m.opts.Project)
	m.opts.validateAdapter(&p)
	format := m.opts.ToolFormat
	p.check(format == "" || slices.Contains(toolFormats, format),
		"tool format %q is not known; there are %s", format, strings.Join(toolFormats, ", "))
	m.opts.Retention.validate(&p)
	_, keeps := b.(CheckpointKeeper)
	p.check(b == nil || keeps || m.opts.Retention == nil, "retention is set, and %T keeps no checkpoints", b)
	p.check(m.opts.CollapseAfter >= 0, "CollapseAfter is %d, want >= 0", m.opts.CollapseAfter)
	if err := m.opts.Chat.settings(nil).Validate(); err != nil {
		p.addf("chat options: %v", err)
	}
	if _, err := m.opts.Chat.templateArgs(nil); err != nil {
		p.addf("chat options: %v", err)
	}
	return p.err("register", "correct NewModel's name and options")
}

// toolFormats are the values of ModelOptions.ToolFormat.
var toolFormats = []string{"hermes", "llama3_json", "pythonic", "qwen3_coder"}

// validateAdapter adds what is wrong with what is trained.
func (o *ModelOptions) validateAdapter(p *problems) {
	if o.Adapter == "" && o.Fork == "" {
		o.LoRA.validate(p)
		return
	}
	start := "Adapter"
	if o.Fork != "" {
		start = "Fork"
	}
	p.check(o.Adapter == "" || o.Fork == "", "Adapter and Fork are both set")
	p.check(o.LoRA.Rank == 0 && o.LoRA.Alpha == 0 && len(o.LoRA.Targets) == 0,
		"LoRA is set, and %s too, which says what it is: leave LoRA empty", start)
	p.check(!o.Frozen, "Frozen is set, and %s too: a frozen model has no adapter", start)
}

// validate adds what is wrong with the adapter.
func (l *LoRA) validate(p *problems) {
	p.check(l.Rank > 0, "LoRA rank is %d, want > 0", l.Rank)
	p.check(finite(l.Alpha) && l.Alpha > 0, "LoRA alpha is %v, want a finite number > 0", l.Alpha)
	for i, target := range l.Targets {
		p.check(target != "", "LoRA target %d is empty", i)
		p.check(!slices.Contains(l.Targets[:i], target), "LoRA target %q is named twice", target)
	}
}

// folderName checks that s can be the name of a folder on every system, and part of "name@step".
func (p *problems) folderName(what, s string) {
	p.check(s != "", "%s is empty", what)
	p.check(s != "." && s != "..", "%s is %q, which names another folder", what, s)
	p.check(!strings.ContainsAny(s, `/\@`), `%s %q contains one of / \ @`, what, s)
	p.check(!strings.ContainsFunc(s, unicode.IsControl), "%s %q contains a control character", what, s)
	p.check(strings.TrimSpace(s) == s, "%s %q begins or ends with a space", what, s)
}
