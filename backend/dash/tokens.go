package dash

import (
	"context"
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
	for _, step := range d.run.steps {
		if h.opts.Logprobs != nil {
			d.ToSteps = append(d.ToSteps, step)
		}
	}
	if d.Color == "none" {
		return nil
	}
	d.Legend, d.Colors = legends[d.Color], colorName(d.Color, d.To)
	texts, err := h.texts(d.run)
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

// texts returns the function that has the bytes of a run's tokens.
func (h *Handler) texts(r *run) (func(int32) []byte, error) {
	if h.opts.Tokens == nil {
		return nil, fmt.Errorf("the page has no tokenizer")
	}
	return h.opts.Tokens(r.Run)
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
	ids := p.sample.IDs
	if len(ids) > maxTokens {
		more = len(ids) - maxTokens
		ids = ids[:maxTokens]
	}
	for i, id := range ids {
		t := token{Text: p.text(id)}
		t.Class, t.Title = p.describe(i)
		list = append(list, t)
	}
	return list, more
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
		class = logprobClass(logprob)
	case "change":
		change := float64(p.after[i]) - logprob
		title += fmt.Sprintf(", %+.3f under step %d", change, p.to)
		class = changeClass(change)
	case "advantage":
		title += ", advantage " + signed(p.advantage)
		if !forced {
			class = advantageClass(p.advantage)
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

// logprobClass is one of five classes, by the probability.
func logprobClass(logprob float64) string {
	switch p := math.Exp(logprob); {
	case p >= 0.9:
		return "t-p4"
	case p >= 0.5:
		return "t-p3"
	case p >= 0.1:
		return "t-p2"
	case p >= 0.01:
		return "t-p1"
	}
	return "t-p0"
}

// changeClass is one of seven classes, by how much likelier a token has become.
func changeClass(change float64) string {
	size := 0
	for _, bound := range []float64{0.01, 0.1, 1} {
		if math.Abs(change) >= bound {
			size++
		}
	}
	switch {
	case size == 0:
		return "t-same"
	case change > 0:
		return fmt.Sprintf("t-up%d", size)
	}
	return fmt.Sprintf("t-down%d", size)
}

// advantageClass is one of seven classes.
func advantageClass(a float64) string {
	size := 1
	for _, bound := range []float64{0.5, 1.5} {
		if math.Abs(a) >= bound {
			size++
		}
	}
	switch {
	case a == 0:
		return "t-same"
	case a > 0:
		return fmt.Sprintf("t-up%d", size)
	}
	return fmt.Sprintf("t-down%d", size)
}

// colorNames name the colours.
var colorNames = map[string]string{
	"logprob": "Probability when sampled", "change": "Change of the logprob", "advantage": "Advantage of the trajectory",
	"forced": "Choice",
}

// colorName says what the colours are of.
func colorName(color string, to int) string {
	if color == "change" {
		return fmt.Sprintf("%s up to step %d", colorNames[color], to)
	}
	return colorNames[color]
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
