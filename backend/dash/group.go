package dash

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/quantity"
)

const (
	maxColumns = 16      // trajectories side by side
	maxShown   = 20_000  // bytes of a message; the rest is a download
	maxGroup   = 1 << 20 // bytes of messages on a page, roughly; then messages are cut shorter
)

// groupData is a group, with its trajectories side by side.
type groupData struct {
	*place
	Group              int
	Count              int    // trajectories
	Reward             string // mean
	Groups             int    // of the step
	Order, Color       string
	To                 int // step whose logprobs are compared with those of the samples
	ToSteps            []int
	From               int // first shown trajectory, in the order
	PagePrev, PageNext string
	Before, After      string // addresses of the groups beside
	Shared             []turn // messages that all trajectories begin with
	Columns            []column
	Failures           []art.Failure
	Metrics            [][2]string
	Logs               []string
	Skip, Note         string
	Legend             []legendItem
	Colors             string // what the colours are of
	Stars              bool
}

// column is a trajectory.
type column struct {
	Index             int // in the group
	Rank              int // by reward, from 1
	Reward            string
	Advantage         string
	Sign              string // of the advantage: up, down or none
	Starred           bool
	Histories         []conversation
	Logs              []string
	Metrics, Metadata [][2]string
	Duration          string
	Tokens            int
	trajectory        *art.Trajectory
	advantage         float64
}

// conversation is a history.
type conversation struct {
	Title string
	Tools []art.Tool
	Turns []turn
}

// turn is a message.
type turn struct {
	Role, Name string
	Class      string // the role, if it is a known one
	Text       string
	More, Size string // address and size of the whole text, if it is longer
	Reasoning  string
	Calls      []art.ToolCall
	Tool       string // whose result it is
	Sampled    bool
	Step       int
	Finish     string
	Tokens     []token // in place of the text
	MoreTok    int     // tokens that are left out
}

// groupPage is the page of a group.
func (h *Handler) groupPage(r *http.Request) (*page, error) {
	at, err := h.placeOf(r)
	if err != nil {
		return nil, err
	}
	d := &groupData{place: at, Group: at.p.number("group", 0), From: at.p.number("from", 0), Stars: h.opts.Stars,
		Order: at.p.choice("order", "reward", "advantage", "attempt", "length"),
		Color: at.p.choice("color", "none", "logprob", "change", "advantage", "forced")}
	d.To = at.p.number("to", at.run.step())
	if at.p.err != nil {
		return nil, at.p.err
	}
	d.Groups = len(at.index.groups)
	if d.Group > 0 {
		d.Before = at.p.with("group", "group", strconv.Itoa(d.Group-1), "from", "")
	}
	if d.Group+1 < d.Groups {
		d.After = at.p.with("group", "group", strconv.Itoa(d.Group+1), "from", "")
	}
	g, err := at.run.ReadGroup(at.Split, at.Step, d.Group)
	if err != nil {
		return nil, err
	}
	d.fill(g)
	starred, err := h.starredOf(at, d.Group)
	if err != nil {
		return nil, err
	}
	for i := range d.Columns {
		d.Columns[i].Starred = starred[d.Columns[i].Index]
	}
	if err := h.paint(r.Context(), d); err != nil {
		return nil, err
	}
	return &page{name: "group.html", Title: fmt.Sprintf("%s group %d", at.Run, d.Group), Data: d,
		Crumbs: at.crumbs(crumb{fmt.Sprintf("group %d", d.Group), ""})}, nil
}

// fill makes the columns.
func (d *groupData) fill(g *art.TrajectoryGroup) {
	w := d.weighing()
	d.Count, d.Failures, d.Logs, d.Note = len(g.Trajectories), g.Failures, g.Logs, w.Note
	d.Metrics = pairs(g.Metrics)
	rewards := make([]float64, len(g.Trajectories))
	for i, t := range g.Trajectories {
		rewards[i] = t.Reward
	}
	advantages, reason := w.advantages(rewards)
	if reason != "" {
		d.Skip = skipText(string(reason))
	}
	if len(rewards) > 0 && reason != credit.ReasonBadReward {
		d.Reward = number(meanPoint(0, rewards).Y)
	}
	all := make([]column, len(g.Trajectories))
	for i, t := range g.Trajectories {
		all[i] = newColumn(t, i, advantages[i], rewards)
	}
	// The best come first.
	slices.SortStableFunc(all, func(a, b column) int {
		switch d.Order {
		case "reward":
			return cmp.Compare(b.trajectory.Reward, a.trajectory.Reward)
		case "advantage":
			return cmp.Compare(b.advantage, a.advantage)
		case "length":
			return cmp.Compare(b.Tokens, a.Tokens)
		}
		return cmp.Compare(a.Index, b.Index)
	})
	first := min(d.From, len(all))
	last := min(first+maxColumns, len(all))
	if first > 0 {
		d.PagePrev = d.p.with("group", "from", strconv.Itoa(max(0, first-maxColumns)))
	}
	if last < len(all) {
		d.PageNext = d.p.with("group", "from", strconv.Itoa(last))
	}
	d.Columns = all[first:last]
	shared := sharedMessages(g.Trajectories)
	messages := 0
	for _, c := range d.Columns {
		for _, h := range c.trajectory.Histories() {
			messages += len(h.Messages)
		}
	}
	limit := max(500, min(maxShown, maxGroup/max(1, messages)))
	if shared > 0 {
		d.Shared = d.conversation(&art.History{Messages: g.Trajectories[0].Messages[:shared]}, 0, 0, 0, limit).Turns
	}
	for i := range d.Columns {
		d.converse(&d.Columns[i], shared, limit)
	}
}

// newColumn has what columns are sorted by.
func newColumn(t *art.Trajectory, index int, advantage float64, rewards []float64) column {
	c := column{Index: index, Reward: number(t.Reward), Advantage: signed(advantage), Sign: signOf(advantage),
		Logs: t.Logs, Metrics: pairs(t.Metrics), Duration: duration(t.Duration.Round(time.Millisecond)),
		trajectory: t, advantage: advantage, Rank: 1}
	for _, r := range rewards {
		if r > t.Reward {
			c.Rank++
		}
	}
	for _, key := range sortedKeys(t.Metadata) {
		c.Metadata = append(c.Metadata, [2]string{key, fmt.Sprint(t.Metadata[key])})
	}
	for _, s := range t.Samples() {
		c.Tokens += len(s.IDs)
	}
	return c
}

// signed writes a number with its sign.
func signed(v float64) string {
	if v > 0 {
		return "+" + number(v)
	}
	return number(v)
}

func signOf(v float64) string {
	switch {
	case v > 0:
		return "up"
	case v < 0:
		return "down"
	}
	return "none"
}

// sharedMessages is how many messages all trajectories begin with, before the first that was sampled.
func sharedMessages(list []*art.Trajectory) int {
	if len(list) < 2 {
		return 0
	}
	n := len(list[0].Messages)
	for _, t := range list {
		n = min(n, len(t.Messages))
		for i := range n {
			if t.Messages[i].Sample != nil || !sameMessage(t.Messages[i], list[0].Messages[i]) {
				n = i
				break
			}
		}
	}
	return n
}

// sameMessage compares what can be seen.
func sameMessage(a, b art.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning && a.Name == b.Name &&
		reflect.DeepEqual(a.ToolCalls, b.ToolCalls)
}

// converse makes the conversations of a column. The first shared messages are left out.
func (d *groupData) converse(c *column, shared, limit int) {
	for i, history := range c.trajectory.Histories() {
		skip := 0
		if i == 0 {
			skip = shared
		}
		view := d.conversation(history, c.Index, i, skip, limit)
		if i > 0 {
			view.Title = fmt.Sprintf("additional history %d", i)
		}
		c.Histories = append(c.Histories, view)
	}
}

// conversation makes turns of the messages of a history from the skipped ones on.
func (d *groupData) conversation(h *art.History, trajectory, history, skip, limit int) conversation {
	c := conversation{Tools: h.Tools}
	calls := map[string]string{}
	for i, m := range h.Messages[skip:] {
		t := turn{Role: string(m.Role), Name: m.Name, Calls: slices.Clone(m.ToolCalls)}
		switch m.Role {
		case art.RoleSystem, art.RoleDeveloper, art.RoleUser, art.RoleAssistant, art.RoleTool:
			t.Class = string(m.Role)
		}
		var more bool
		if t.Text, more = cut(m.Content, limit); more {
			t.Size = count(float64(len(m.Content)))
			t.More = d.Link("text", "group", d.Group, "trajectory", trajectory, "history", history, "message", skip+i)
		}
		t.Reasoning, _ = cut(m.Reasoning, limit)
		for k := range t.Calls {
			calls[t.Calls[k].ID] = t.Calls[k].Name
			t.Calls[k].Arguments, _ = cut(t.Calls[k].Arguments, limit)
		}
		if m.Role == art.RoleTool {
			t.Tool = cmp.Or(calls[m.ToolCallID], m.Name, "tool")
		}
		if m.Sample != nil {
			t.Sampled, t.Step, t.Finish = true, m.Sample.Step, m.Sample.Finish
		}
		c.Turns = append(c.Turns, t)
	}
	return c
}

// text is the whole text of a message.
func (h *Handler) text(r *http.Request) (name, text string, err error) {
	at, err := h.placeOf(r)
	if err != nil {
		return "", "", err
	}
	p := at.p
	group, trajectory, history, message := p.number("group", 0), p.number("trajectory", 0), p.number("history", 0),
		p.number("message", 0)
	if p.err != nil {
		return "", "", p.err
	}
	g, err := at.run.ReadGroup(at.Split, at.Step, group)
	if err != nil {
		return "", "", err
	}
	if trajectory >= len(g.Trajectories) {
		return "", "", notFound("the group has %s", quantity.Of(len(g.Trajectories), "trajectory"))
	}
	histories := g.Trajectories[trajectory].Histories()
	if history >= len(histories) || message >= len(histories[history].Messages) {
		return "", "", notFound("there is no such message")
	}
	return "message.txt", histories[history].Messages[message].Content, nil
}
