package dash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// maxTokens bounds the tokens of a message on the map.
const maxTokens = 3000

// token is a token on the map.
type token struct {
	Text  string
	Class string // of its colour
	Title string // what the numbers are
}

// legendItem explains a colour.
type legendItem struct{ Class, Text string }

// paint puts the tokens of the samples in place of the texts, coloured by what was asked for.
func (h *Handler) paint(ctx context.Context, d *groupData) error {
	if h.opts.Logprobs != nil {
		d.ToSteps = d.run.steps
	}
	if d.Color == "none" {
		return nil
	}
	d.Legend, d.Colors = legends[d.Color], colorNames[d.Color]
	if d.Color == "change" {
		d.Colors += fmt.Sprintf(" up to step %d", d.To)
	}
	var texts func(int32) []byte
	err := errors.New("the page has no tokenizer")
	if h.opts.Tokens != nil {
		texts, err = h.opts.Tokens(d.run.Run)
	}
	if err != nil {
		d.Note = strings.TrimSpace(d.Note + " Tokens are shown as ids: " + err.Error() + ".")
	}
	if d.Color == "change" && h.opts.Logprobs == nil {
		return badRequest("how logprobs changed is not known here: art runs dash computes it, and a program whose " +
			"dash.Options have Logprobs")
	}
	for i := range d.Columns {
		if err := h.paintColumn(ctx, d, &d.Columns[i], texts); err != nil {
			return err
		}
	}
	return nil
}

// paintColumn paints the samples of a trajectory.
func (h *Handler) paintColumn(ctx context.Context, d *groupData, c *column, texts func(int32) []byte) (err error) {
	for k, history := range c.trajectory.Histories() {
		turns := c.Histories[k].Turns
		skipped := len(history.Messages) - len(turns)
		for m := range turns {
			s := history.Messages[m+skipped].Sample
			if s == nil {
				continue
			}
			p := painter{color: d.Color, sample: s, advantage: c.advantage, texts: texts, to: d.To}
			if d.Color == "change" {
				if p.after, err = h.after(ctx, d, s); err != nil {
					return err
				}
			}
			turns[m].Tokens, turns[m].MoreTok = p.tokens()
		}
	}
	return nil
}

// after returns the logprobs of what was sampled under another step.
func (h *Handler) after(ctx context.Context, d *groupData, s *art.Sample) ([]float32, error) {
	ids := append(append([]int32(nil), s.PromptIDs...), s.IDs...)
	logprobs, err := h.opts.Logprobs(ctx, d.run.Run, d.To, ids)
	if err != nil {
		return nil, fmt.Errorf("logprobs under step %d: %w", d.To, err)
	}
	if len(logprobs) != len(ids)-1 || len(s.PromptIDs) == 0 {
		return nil, fmt.Errorf("logprobs under step %d: %d for %d tokens", d.To, len(logprobs), len(ids))
	}
	return logprobs[len(s.PromptIDs)-1:], nil
}

// painter colours the tokens of a sample.
type painter struct {
	color     string
	sample    *art.Sample
	advantage float64
	after     []float32 // logprobs under step to
	to        int
	texts     func(int32) []byte
}

// tokens returns the first tokens, and how many are left out. Tokens that are parts of one character are written as
// their bytes.
func (p *painter) tokens() (list []token, more int) {
	shown := min(len(p.sample.IDs), maxTokens)
	for i, id := range p.sample.IDs[:shown] {
		t := token{Text: p.text(id)}
		t.Class, t.Title = p.describe(i)
		list = append(list, t)
	}
	return list, len(p.sample.IDs) - shown
}

// text is the text of a token.
func (p *painter) text(id int32) string {
	if p.texts == nil {
		return strconv.Itoa(int(id)) + " "
	}
	b := p.texts(id)
	switch {
	case len(b) == 0:
		return fmt.Sprintf("‹%d›", id)
	case !utf8.Valid(b):
		return fmt.Sprintf("‹% x›", b)
	}
	return strings.ReplaceAll(string(b), "\n", "↵\n")
}

// describe returns the colour of a token and its numbers.
func (p *painter) describe(i int) (class, title string) {
	s := p.sample
	title = fmt.Sprintf("token %d", s.IDs[i])
	if i >= len(s.Logprobs) {
		return "", title
	}
	logprob := float64(s.Logprobs[i])
	title += fmt.Sprintf(", probability %s, logprob %.3f", probability(logprob), logprob)
	forced := i < len(s.Forced) && s.Forced[i]
	if forced {
		title += ", forced by the grammar"
	}
	switch p.color {
	case "logprob":
		class = fmt.Sprintf("t-p%d", reached(math.Exp(logprob), 0.01, 0.1, 0.5, 0.9))
	case "change":
		change := float64(p.after[i]) - logprob
		title += fmt.Sprintf(", %+.3f under step %d", change, p.to)
		class = signedClass(change, 0.01, 0.1, 1)
	case "advantage":
		title += ", advantage " + signed(p.advantage)
		if !forced {
			class = signedClass(p.advantage, math.SmallestNonzeroFloat64, 0.5, 1.5)
		}
	case "forced":
		class = "t-free"
		if forced {
			class = "t-forced"
		}
	}
	return class, title
}

// probability is that of a logprob, in percent.
func probability(logprob float64) string {
	p := 100 * math.Exp(logprob)
	if p >= 0.1 || p == 0 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.2g %%", p)
}

// reached counts the bounds that a value reaches.
func reached(v float64, bounds ...float64) (n int) {
	for _, bound := range bounds {
		n += bit(v >= bound)
	}
	return n
}

// signedClass is one of seven classes, by the sign of a value and how many of three bounds its size reaches.
func signedClass(v float64, bounds ...float64) string {
	size := reached(math.Abs(v), bounds...)
	switch {
	case size == 0:
		return "t-same"
	case v > 0:
		return fmt.Sprintf("t-up%d", size)
	}
	return fmt.Sprintf("t-down%d", size)
}

// colorNames name the colours.
var colorNames = map[string]string{
	"logprob": "Probability when sampled", "change": "Change of the logprob", "advantage": "Advantage of the trajectory",
	"forced": "Choice",
}

// legends explain the colours.
var legends = map[string][]legendItem{
	"logprob": {{"t-p4", "90 % or more"}, {"t-p3", "50 to 90 %"}, {"t-p2", "10 to 50 %"}, {"t-p1", "1 to 10 %"},
		{"t-p0", "below 1 %"}},
	"change": {{"t-down3", "-1 nat or more"}, {"t-down2", "-0.1"}, {"t-down1", "-0.01"}, {"t-same", "the same"},
		{"t-up1", "+0.01"}, {"t-up2", "+0.1"}, {"t-up3", "+1 nat or more"}},
	"advantage": {{"t-down3", "-1.5 or less"}, {"t-down2", "-0.5"}, {"t-down1", "below 0"}, {"t-same", "0"},
		{"t-up1", "above 0"}, {"t-up2", "+0.5"}, {"t-up3", "+1.5 or more"}},
	"forced": {{"t-free", "sampled"}, {"t-forced", "forced by the grammar: not trained on"}},
}
