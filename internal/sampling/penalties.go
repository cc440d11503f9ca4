package sampling

// Penalties change the logits of single tokens before anything else reshapes the distribution. The zero value changes
// nothing.
type Penalties struct {
	// Bias is added to the logits of tokens.
	Bias map[int32]float64
	// Repetition divides positive logits of tokens that prompt or reply have, and multiplies negative ones (Keskar et al.
	// 2019). 0 and 1 are off.
	Repetition float64
	// Presence is subtracted from the logits of tokens that the reply has, Frequency times the number of times it has
	// them. 0 is off.
	Presence, Frequency float64
}

// Adjusts reports whether [Penalties.Adjust] may change anything.
func (p Penalties) Adjusts() bool {
	return len(p.Bias) > 0 || p.repeats() || p.Presence != 0 || p.Frequency != 0
}

func (p Penalties) repeats() bool { return p.Repetition != 0 && p.Repetition != 1 }

// Counts says which tokens a prompt has, and how often the reply has each so far.
type Counts struct {
	prompt map[int32]bool
	reply  map[int32]int
}

// NewCounts returns the counts of a reply to prompt that has no tokens yet.
func NewCounts(prompt []int32) *Counts {
	c := &Counts{prompt: make(map[int32]bool, len(prompt)), reply: map[int32]int{}}
	for _, id := range prompt {
		c.prompt[id] = true
	}
	return c
}

// Add counts a token of the reply.
func (c *Counts) Add(id int32) { c.reply[id]++ }

// Adjust changes scores [V], which are logprobs, as the penalties say. With z the logits, b the bias, r the repetition,
// p the presence and f the frequency penalty, and n the number of times that the reply has a token:
//
//	z = z + b
//	z = z / r if z > 0, z r otherwise   for tokens of prompt and reply
//	z = z - f n - p                     for tokens of the reply
//
// This is the order of vLLM. scores are z less the normalizer of the softmax, log(sum(exp(z))), of the unchanged
// logits.
func (p Penalties) Adjust(scores []float32, normalizer float64, c *Counts) {
	for id, b := range p.Bias {
		scores[id] = float32(float64(scores[id]) + b)
	}
	if p.repeats() {
		penalize := func(id int32) {
			z := float64(scores[id]) + normalizer
			if z > 0 {
				z /= p.Repetition
			} else {
				z *= p.Repetition
			}
			scores[id] = float32(z - normalizer)
		}
		for id := range c.prompt {
			penalize(id)
		}
		for id := range c.reply {
			if !c.prompt[id] {
				penalize(id)
			}
		}
	}
	for id, n := range c.reply {
		scores[id] = float32(float64(scores[id]) - p.Frequency*float64(n) - p.Presence)
	}
}
