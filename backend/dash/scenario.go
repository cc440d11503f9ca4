package dash

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"html/template"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
)

// scenarioData is one scenario at every step: the groups that begin with the same messages, or have the same number.
type scenarioData struct {
	*place
	Group  int
	By     string // prompt or index
	Prompt []turn
	Rows   []scenarioRow
	Chart  *chartView
	Left   int // steps that were not looked at in time
}

// scenarioRow is the scenario at a step.
type scenarioRow struct {
	Step, Group      int
	Link, Mean, Best string // Best is the highest reward
	Bars             []histogramBar
	Snippet          template.HTML

	rewards []float64
}

// scenarioPage is the page of a scenario.
func (h *Handler) scenarioPage(r *http.Request) (*page, error) {
	at, err := h.placeOf(r)
	if err != nil {
		return nil, err
	}
	d := &scenarioData{place: at, Group: at.p.number("group", 0), By: at.p.choice("by", "prompt", "index")}
	if at.p.err != nil {
		return nil, at.p.err
	}
	if d.Group >= len(at.index.groups) {
		return nil, notFound("split %s of step %d has %s", at.Split, at.Step, quantity.Of(len(at.index.groups), "group"))
	}
	if err := d.collect(h.store); err != nil {
		return nil, err
	}
	return &page{name: "scenario.html", Title: fmt.Sprintf("%s scenario %d", at.Run, d.Group), Runs: []string{at.Run},
		Data: d, Crumbs: at.crumbs(crumb{"the same scenario at every step", ""})}, nil
}

// collect finds the groups at all steps, and draws their rewards.
func (d *scenarioData) collect(s *store) error {
	began := time.Now()
	find, err := d.finder(s)
	if err != nil {
		return err
	}
	lowest, highest := math.Inf(1), math.Inf(-1)
	line := series{Name: "mean reward", Dots: true}
	for i, step := range slices.Backward(d.Steps) {
		if time.Since(began) > searchBudget {
			d.Left = i + 1
			break
		}
		index, err := find(step)
		if err != nil {
			return err
		}
		x, err := s.index(d.run, d.Split, step)
		if err != nil {
			return err
		}
		if index < 0 || index >= len(x.groups) {
			continue
		}
		if rewards := x.groups[index].rewards(); len(rewards) > 0 {
			p := meanPoint(step, rewards)
			lowest, highest = min(lowest, p.Low), max(highest, p.High)
			line.Points = append(line.Points, p)
			d.Rows = append(d.Rows, scenarioRow{Step: step, Group: index, Mean: number(p.Y), Best: number(p.High),
				Link:    link("group", "run", d.Run, "split", d.Split, "step", step, "group", index),
				rewards: rewards})
		}
	}
	slices.Reverse(line.Points)
	c := chart{Title: "Reward of the scenario", X: xStep, Series: []series{line},
		Note: "The line is the mean, the band goes from the lowest to the highest reward."}
	d.Chart = c.view()
	for i := range d.Rows {
		d.Rows[i].Bars = histogram(d.Rows[i].rewards, lowest, highest)
	}
	return d.snippets()
}

// finder returns a function that finds the group of the scenario at a step, -1 for none.
func (d *scenarioData) finder(s *store) (func(step int) (int, error), error) {
	if d.By == "index" {
		return func(int) (int, error) { return d.Group, nil }, nil
	}
	here, err := s.prompts(d.run, d.Split, d.Step)
	if err != nil {
		return nil, err
	}
	return func(step int) (int, error) {
		prompts, err := s.prompts(d.run, d.Split, step)
		return slices.Index(prompts, here[d.Group]), err
	}, nil
}

// meanPoint is the mean of rewards, with their range.
func meanPoint(step int, rewards []float64) point {
	sum := 0.0
	for _, r := range rewards {
		sum += r
	}
	return point{float64(step), sum / float64(len(rewards)), slices.Min(rewards), slices.Max(rewards)}
}

// snippets adds the first reply of the best trajectory to the lines, and the prompt.
func (d *scenarioData) snippets() error {
	const most = 60
	for i := range d.Rows[:min(len(d.Rows), most)] {
		row := &d.Rows[i]
		g, err := d.run.ReadGroup(d.Split, row.Step, row.Group)
		if err != nil {
			return err
		}
		best := slices.MaxFunc(g.Trajectories, func(a, b *art.Trajectory) int { return cmp.Compare(a.Reward, b.Reward) })
		for _, m := range best.Messages {
			if m.Role == art.RoleAssistant {
				row.Snippet = visible(oneLine(m.Content, 140))
				break
			}
		}
		if i == 0 {
			view := groupData{place: d.place, Group: row.Group}
			d.Prompt = view.conversation(&art.History{Messages: promptOf(best.Messages)}, 0, 0, 0, 2000).Turns
		}
	}
	return nil
}

// promptOf are the messages before the first reply.
func promptOf(messages []art.Message) []art.Message {
	i := slices.IndexFunc(messages, func(m art.Message) bool { return m.Role == art.RoleAssistant })
	if i < 0 {
		return messages
	}
	return messages[:i]
}

// prompts returns a hash of the prompt of each group of (split, step): of its first trajectory. It is 0 for a group
// without trajectories.
func (s *store) prompts(r *run, split string, step int) ([]uint64, error) {
	key, err := keyOf(r, split, step)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known := s.hashes[key]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	x, err := s.index(r, split, step)
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, len(x.groups))
	err = r.Texts(split, step, func(group, trajectory int, messages []art.Message) bool {
		if trajectory == 0 && group < len(hashes) {
			sum := fnv.New64a()
			for _, m := range promptOf(messages) {
				fmt.Fprintf(sum, "%s\x00%s\x00", m.Role, m.Content)
			}
			hashes[group] = sum.Sum64()
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashes == nil || len(s.hashes) > 10_000 {
		s.hashes = map[indexKey][]uint64{}
	}
	s.hashes[key] = hashes
	return hashes, nil
}
