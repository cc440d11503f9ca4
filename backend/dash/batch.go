package dash

import (
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
)

const (
	maxBatchGroups = 12 // drawn groups
	maxBatchLines  = 64 // drawn sequences of a group
)

// batch is the tokens of a step as a picture: for each group the prompt that its trajectories share, and behind it the
// sequences that are trained on.
type batch struct {
	Groups  []batchGroup
	Shared  int // groups that are not drawn
	Longest int
	Counts  batchCounts
}

// batchCounts are the tokens of what is drawn.
type batchCounts struct {
	Sequences, Tokens, Context, Trained, Skipped, Forced, Saved int
}

// batchGroup is a group: its shared prompt, and its sequences below each other.
type batchGroup struct {
	Number int
	Link   string
	Prompt string // width in percent
	Tokens int    // of the prompt
	Lines  []batchLine
	Height int    // of the drawing, in pixels
	More   int    // sequences that are left out
	Skip   string // why it is not trained on
}

// batchLine is a sequence.
type batchLine struct {
	Y        string
	Segments []segment
	Label    string
}

// segment is a part of a sequence: context, sampled or forced tokens, or those of a group that is not trained on.
type segment struct{ X, W, Class string }

// span is a number of tokens of one kind.
type span struct {
	kind string // context, trained, forced or skipped
	n    int
}

// sequence is what a training computes at once: a conversation, as the model saw it.
type sequence struct {
	prompt []int32 // of the first sample
	spans  []span  // behind the prompt
	label  string
}

// length is that without the prompt.
func (s *sequence) length() (n int) {
	for _, p := range s.spans {
		n += p.n
	}
	return n
}

// sequencesOf returns the sequences of a trajectory: samples that continue each other are one.
func sequencesOf(t *art.Trajectory, label string) []sequence {
	var list []sequence
	for _, h := range t.Histories() {
		var last *art.Sample
		for i := range h.Messages {
			s := h.Messages[i].Sample
			if s == nil {
				continue
			}
			if last == nil || !continues(last, s) {
				list = append(list, sequence{prompt: s.PromptIDs, label: label})
			} else if n := len(s.PromptIDs) - len(last.PromptIDs) - len(last.IDs); n > 0 {
				list[len(list)-1].spans = append(list[len(list)-1].spans, span{"context", n})
			}
			list[len(list)-1].spans = append(list[len(list)-1].spans, sampledSpans(s)...)
			last = s
		}
	}
	return list
}

// continues reports whether the prompt of a sample begins with all of another.
func continues(before, s *art.Sample) bool {
	n := len(before.PromptIDs)
	return len(s.PromptIDs) >= n+len(before.IDs) && sharedPrefix(before.PromptIDs, s.PromptIDs) == n &&
		sharedPrefix(before.IDs, s.PromptIDs[n:]) == len(before.IDs)
}

// sharedPrefix is how many ids both begin with.
func sharedPrefix(a, b []int32) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// sampledSpans divides what was sampled into forced and other tokens.
func sampledSpans(s *art.Sample) []span {
	var list []span
	for i := range s.IDs {
		kind := "trained"
		if i < len(s.Forced) && s.Forced[i] {
			kind = "forced"
		}
		if len(list) == 0 || list[len(list)-1].kind != kind {
			list = append(list, span{kind: kind})
		}
		list[len(list)-1].n++
	}
	return list
}

// readBatch reads the first groups of a step and draws them.
func (h *Handler) readBatch(at *place) (*batch, error) {
	b := &batch{Shared: max(0, len(at.index.groups)-maxBatchGroups)}
	var all [][]sequence
	for _, entry := range at.index.groups[:min(len(at.index.groups), maxBatchGroups)] {
		g, err := at.run.ReadGroup(at.Split, at.Step, entry.number)
		if err != nil {
			return nil, err
		}
		var list []sequence
		for i, t := range g.Trajectories {
			list = append(list, sequencesOf(t, fmt.Sprintf("trajectory %d, reward %s", i, number(t.Reward)))...)
		}
		for i := range list {
			b.Longest = max(b.Longest, len(list[i].prompt)+list[i].length())
		}
		all = append(all, list)
		b.Groups = append(b.Groups, newBatchGroup(at, &entry, list))
	}
	for i, list := range all {
		b.draw(&b.Groups[i], list)
	}
	return b, nil
}

// newBatchGroup says what a group is, and marks what is sampled in its sequences when it is not trained on.
func newBatchGroup(at *place, entry *groupEntry, list []sequence) batchGroup {
	g := batchGroup{Number: entry.number, Link: at.Link("group", "group", entry.number)}
	_, reason := at.weighing().advantages(entry.rewards())
	if reason == "" || at.Split != "train" {
		return g
	}
	g.Skip = skipText(string(reason))
	for _, s := range list {
		for i := range s.spans {
			if s.spans[i].kind == "trained" {
				s.spans[i].kind = "skipped"
			}
		}
	}
	return g
}

// draw draws a group. The prompt that all of its sequences share is one bar over their whole height.
func (b *batch) draw(g *batchGroup, list []sequence) {
	if len(list) == 0 {
		return
	}
	shared := len(list[0].prompt)
	for _, s := range list {
		shared = min(shared, sharedPrefix(list[0].prompt, s.prompt))
	}
	g.Tokens, g.Prompt = shared, percent(float64(shared)/float64(b.Longest))
	g.More = max(0, len(list)-maxBatchLines)
	drawn := list[:min(len(list), maxBatchLines)]
	g.Height = max(10, 7*len(drawn))
	for i, s := range list {
		b.count(s, shared)
		if i < len(drawn) {
			g.Lines = append(g.Lines, batchLine{Y: percent(float64(i) / float64(len(drawn))),
				Segments: b.segments(s, shared), Label: fmt.Sprintf("%s: %s", s.label, quantity.Of(len(s.prompt)+s.length(),
					"token"))})
		}
	}
	b.Counts.Saved += shared * (len(list) - 1)
	b.Counts.Tokens += shared
	b.Counts.Context += shared
}

// segments places the parts of a sequence behind the shared prompt.
func (b *batch) segments(s sequence, shared int) []segment {
	var list []segment
	from := shared
	for _, p := range append([]span{{"context", len(s.prompt) - shared}}, s.spans...) {
		if p.n > 0 {
			list = append(list, segment{X: percent(float64(from) / float64(b.Longest)),
				W: percent(float64(p.n) / float64(b.Longest)), Class: p.kind})
		}
		from += p.n
	}
	return list
}

// count adds a sequence to the counts; the shared prompt is counted once for its group.
func (b *batch) count(s sequence, shared int) {
	c := &b.Counts
	c.Sequences++
	own := len(s.prompt) - shared
	c.Tokens, c.Context = c.Tokens+own+s.length(), c.Context+own
	byKind := map[string]*int{"context": &c.Context, "trained": &c.Trained, "forced": &c.Forced, "skipped": &c.Skipped}
	for _, p := range s.spans {
		*byKind[p.kind] += p.n
	}
}
