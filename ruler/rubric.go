package ruler

import (
	"fmt"
	"strings"
)

// DefaultRubric is what is good when nothing else is said.
const DefaultRubric = `- Reaching the goal of the task comes first: what reaches it scores well above what does not.
- A trajectory that gets closer to the goal scores above one that gets less far.
- Among those that reach it, one that needs fewer steps, asks less of the user and repeats nothing scores higher.
- What is claimed must follow from what was seen: an invented fact counts as a failure.
- Make small differences small and large differences large. Equal trajectories get equal scores.`

// Criterion is a part of a rubric that is judged apart.
type Criterion struct {
	Name string // a short key
	Text string // what is asked
	// Weight in the mean. Default 1.
	Weight float64
	// Choices are the possible verdicts, from the worst to the best; the i-th of n is worth i/(n-1). Default "no", "yes".
	Choices []string
}

func criteriaProblems(list []Criterion) []string {
	var problems []string
	seen := map[string]bool{}
	for i, c := range list {
		choices := map[string]bool{}
		for _, choice := range c.Choices {
			choices[fold(choice)] = true
		}
		switch {
		case c.Name == "" || strings.ContainsAny(c.Name, "/\"\n"):
			problems = append(problems, fmt.Sprintf(`criterion %d is called %q, want a key without / and "`, i, c.Name))
		case seen[c.Name]:
			problems = append(problems, fmt.Sprintf("criterion %q is there twice", c.Name))
		case !(c.Weight >= 0) || c.Weight > 1e6:
			problems = append(problems, fmt.Sprintf("criterion %q has the weight %v, want 0 to 1e6", c.Name, c.Weight))
		case len(c.Choices) == 1 || len(choices) < len(c.Choices):
			problems = append(problems,
				fmt.Sprintf("criterion %q has the choices %q, want two or more that differ", c.Name, c.Choices))
		}
		seen[c.Name] = true
	}
	return problems
}

func fold(choice string) string { return strings.ToLower(strings.TrimSpace(choice)) }

// value is what a verdict is worth; ok is false for one that is no choice.
func (c *Criterion) value(verdict string) (value float64, ok bool) {
	for i, choice := range c.Choices {
		if fold(choice) == fold(verdict) {
			return float64(i) / float64(len(c.Choices)-1), true
		}
	}
	return 0, false
}

func (c *Criterion) text() string {
	return fmt.Sprintf("- %q: %s Choices, from the worst to the best: %q.", c.Name, c.Text, c.Choices)
}
