package art

import "slices"

// Validate returns an [ErrInvalid] that lists every value outside of its range: Temperature finite and not negative,
// 0 < TopP <= 1, TopK and MaxTokens not negative, no empty Stop string.
func (s Sampling) Validate() error {
	var p problems
	p.check(finite(s.Temperature) && s.Temperature >= 0, "temperature is %v, want a finite number >= 0", s.Temperature)
	p.check(s.TopP > 0 && s.TopP <= 1, "top_p is %v, want 0 < top_p <= 1", s.TopP)
	p.check(s.TopK >= 0, "top_k is %d, want >= 0", s.TopK)
	p.check(s.MaxTokens >= 0, "max_tokens is %d, want >= 0", s.MaxTokens)
	p.check(!slices.Contains(s.Stop, ""), "a stop string is empty")
	return p.err("complete", "correct the ChatOptions of the call or of the model")
}

// settings resolves the options, those of the call before those of the model, to the full set. The seed is left alone
// when neither names one.
func (o *ChatOptions) settings(defaults *ChatOptions) Sampling {
	s := Sampling{Temperature: 1, TopP: 1}
	for _, o := range []*ChatOptions{defaults, o} {
		o.override(&s)
	}
	return s
}

// override sets in s what o sets.
func (o *ChatOptions) override(s *Sampling) {
	if o == nil {
		return
	}
	set(&s.Temperature, o.Temperature)
	set(&s.TopP, o.TopP)
	set(&s.TopK, o.TopK)
	set(&s.MaxTokens, o.MaxTokens)
	set(&s.Seed, o.Seed)
	if o.Stop != nil {
		s.Stop = slices.Clone(o.Stop)
	}
}

// set assigns *from unless from is nil.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// hasSeed tells whether the options name a seed.
func (o *ChatOptions) hasSeed() bool { return o != nil && o.Seed != nil }

// clone returns a deep copy.
func (o ChatOptions) clone() ChatOptions {
	return ChatOptions{
		Temperature: clonePtr(o.Temperature), TopP: clonePtr(o.TopP), TopK: clonePtr(o.TopK),
		MaxTokens: clonePtr(o.MaxTokens), Stop: slices.Clone(o.Stop), Seed: clonePtr(o.Seed), TemplateArgs: slices.Clone(o.TemplateArgs),
	}
}

// clonePtr returns a pointer to a copy of what p points to.
func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
