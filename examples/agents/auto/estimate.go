package auto

import (
	"fmt"
	"strings"
)

// Price is what a million tokens cost in US dollars.
type Price struct{ Prompt, Completion float64 }

// Prices are those of the writer and the judge. Zero is a model that costs nothing, such as a local one.
type Prices struct{ Writer, Judge Price }

// Load is what a part of the project asks of a model, at most.
type Load struct {
	Calls, PromptTokens, CompletionTokens int
	Dollars                               float64
}

// Estimate is what a project takes, before anything is asked for: an upper bound in calls, and in tokens a guess from
// the lengths that inputs and replies have at most.
type Estimate struct {
	Writer Load
	Judge  Load
	// Replies are those that the model and the base model write, which are trained and run locally.
	Replies, ReplyTokens int
}

// Tokens that the estimate counts with.
const (
	inputTokens       = 60  // of an input
	promptTokens      = 300 // of what is asked, beside inputs and replies
	explanationTokens = 60  // of a judge, for a reply
	perCall           = 8   // inputs of a call
)

// Estimate computes what the project takes. What is stored already is not subtracted.
func (p *Project) Estimate() Estimate {
	p.setDefaults()
	inputs := p.Inputs + p.Held
	comparisons := 1 + (p.Steps+p.Every-1)/p.Every
	var e Estimate
	e.Writer.Calls = 3 * ((inputs + perCall - 1) / perCall)
	e.Writer.PromptTokens = e.Writer.Calls*(promptTokens+30*inputTokens) + 2*promptTokens
	e.Writer.CompletionTokens = e.Writer.Calls*perCall*inputTokens + 2*p.MaxTokens
	e.Writer.Calls += 2

	votes := max(1, p.JudgeOptions.Votes)
	groups, pairs := p.Steps*p.Batch, comparisons*p.Held
	e.Judge.Calls = votes * (groups + 2*pairs)
	e.Judge.PromptTokens = votes * (groups*(promptTokens+p.Group*p.MaxTokens) + 2*pairs*(promptTokens+2*p.MaxTokens))
	e.Judge.CompletionTokens = votes * explanationTokens * (groups*p.Group + 4*pairs)

	e.Replies = groups*p.Group + comparisons*p.Held + p.Held
	e.ReplyTokens = e.Replies * p.MaxTokens
	e.Writer.cost(p.Prices.Writer)
	e.Judge.cost(p.Prices.Judge)
	return e
}

func (l *Load) cost(price Price) {
	l.Dollars = (float64(l.PromptTokens)*price.Prompt + float64(l.CompletionTokens)*price.Completion) / 1e6
}

// Dollars is what all of it costs.
func (e Estimate) Dollars() float64 { return e.Writer.Dollars + e.Judge.Dollars }

// String is the estimate as a table.
func (e Estimate) String() string {
	var b strings.Builder
	for _, row := range []struct {
		name string
		Load
	}{{"writer", e.Writer}, {"judge", e.Judge}} {
		fmt.Fprintf(&b, "%-7s at most %6d calls, %9d prompt and %9d reply tokens, $%.2f\n", row.name, row.Calls,
			row.PromptTokens, row.CompletionTokens, row.Dollars)
	}
	fmt.Fprintf(&b, "%-7s at most %6d replies, %s%9d tokens\n", "model", e.Replies, strings.Repeat(" ", 21), e.ReplyTokens)
	return b.String()
}
