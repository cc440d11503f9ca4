package dash

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
)

// HumanScore is the metric of a trajectory that has the score a person gave.
const HumanScore = "human_score"

// Judge lets people give the rewards of groups, on the page of the [Handler] that has it as [Options].Judge:
//
//	judge := dash.NewJudge()
//	page, err := dash.Start("127.0.0.1:0", &dash.Options{Judge: judge})
//	groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{After: judge.Score})
//
// Any number of groups may wait. A waiting group takes one place of [art.GatherOptions].Concurrency.
type Judge struct {
	mu      sync.Mutex
	queue   []*waitingGroup
	next    int
	changed []func()
}

// waitingGroup is a group that a person is to score.
type waitingGroup struct {
	id      int
	group   *art.TrajectoryGroup
	verdict chan verdict // room for one
}

// verdict is what a person decided on a group.
type verdict struct {
	drop   bool
	scores []float64 // of each trajectory
	note   string
}

// NewJudge returns a judge without groups.
func NewJudge() *Judge { return &Judge{} }

// Score waits until a person has scored the group, and returns it with the scores as rewards. The reward that the
// rollout gave is kept as the metric "independent_reward", the score is the metric [HumanScore], and a remark of the
// person is in Logs. A group that the person drops is no group at all; one without trajectories is returned as it is.
// When ctx ends first, its error is returned.
//
// It is meant for [art.GatherOptions].After.
func (j *Judge) Score(ctx context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
	if len(g.Trajectories) == 0 {
		return []*art.TrajectoryGroup{g}, nil
	}
	j.mu.Lock()
	j.next++
	w := &waitingGroup{id: j.next, group: g, verdict: make(chan verdict, 1)}
	j.queue = append(j.queue, w)
	j.mu.Unlock()
	j.tell()
	defer j.remove(w)
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case v := <-w.verdict:
		if v.drop {
			return nil, nil
		}
		// The scores become the rewards.
		for i, t := range g.Trajectories {
			if t.Metrics == nil {
				t.Metrics = map[string]float64{}
			}
			t.Metrics["independent_reward"], t.Metrics[HumanScore] = t.Reward, v.scores[i]
			t.Reward = v.scores[i]
			if v.note != "" {
				t.Logs = append(t.Logs, "person: "+v.note)
			}
		}
		return []*art.TrajectoryGroup{g}, nil
	}
}

func (j *Judge) remove(w *waitingGroup) {
	j.mu.Lock()
	j.queue = slices.DeleteFunc(j.queue, func(other *waitingGroup) bool { return other == w })
	j.mu.Unlock()
	j.tell()
}

// tell calls those who want to know that the queue has changed.
func (j *Judge) tell() {
	j.mu.Lock()
	list := slices.Clone(j.changed)
	j.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// onChange has f called when the queue changes. A nil judge has no queue.
func (j *Judge) onChange(f func()) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.changed = append(j.changed, f)
}

// first returns the group that has waited longest, and how many wait; nil for none. A nil judge has none.
func (j *Judge) first() (w *waitingGroup, waiting int) {
	if j == nil {
		return nil, 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		return nil, 0
	}
	return j.queue[0], len(j.queue)
}

// decide ends the wait of a group. Of two people, the first counts.
func (j *Judge) decide(id int, v verdict) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.queue, func(w *waitingGroup) bool { return w.id == id })
	if i < 0 {
		return notFound("group %d does not wait any more: somebody else has judged it, or its gather has ended", id)
	}
	w := j.queue[i]
	if n := len(w.group.Trajectories); !v.drop && len(v.scores) != n {
		return badRequest("group %d has %s, not %d", id, quantity.Of(n, "trajectory"), len(v.scores))
	}
	w.verdict <- v
	j.queue = slices.Delete(j.queue, i, i+1) // Score may take a moment: nobody else is to see it
	return nil
}

// rankScores makes scores of ranks: 1 for the best and 0 for the worst, evenly spaced between; equal ranks have the
// mean of their places. Ranks are any numbers, of which the lowest is the best.
//
//	score = 1 - (better + equal/2) / (n - 1)
//
// where better is the number of others with a lower rank, and equal that of others with the same.
func rankScores(ranks []float64) ([]float64, error) {
	scores := make([]float64, len(ranks))
	for i, rank := range ranks {
		if math.IsNaN(rank) || math.IsInf(rank, 0) {
			return nil, fmt.Errorf("rank %d is %v", i+1, rank)
		}
		if len(ranks) == 1 {
			scores[i] = 1
			continue
		}
		lost := 0.0
		for k, other := range ranks {
			switch {
			case k == i:
			case other < rank:
				lost++
			case other == rank:
				lost += 0.5
			}
		}
		scores[i] = 1 - lost/float64(len(ranks)-1)
	}
	return scores, nil
}

// judgeData is the group that a person is to score.
type judgeData struct {
	ID      int
	Waiting int
	Mode    string // rank or score
	Shared  []turn
	Columns []column
}

// judgePage is the page of the group that has waited longest.
func (h *Handler) judgePage(r *http.Request) (*page, error) {
	if h.opts.Judge == nil {
		return nil, notFound("nobody judges here: the program that trains has no dash.Judge")
	}
	p := paramsOf(r)
	d := &judgeData{Mode: p.choice("mode", "rank", "score")}
	if p.err != nil {
		return nil, p.err
	}
	w, waiting := h.opts.Judge.first()
	d.Waiting = waiting
	if w != nil {
		d.ID = w.id
		// The columns are in the order of the attempts and without the rewards: they would sway the judge.
		view := groupData{place: &place{}}
		list := w.group.Trajectories
		shared := sharedMessages(list)
		if shared > 0 {
			d.Shared = view.conversation(&art.History{Messages: list[0].Messages[:shared]}, 0, 0, 0, maxShown).Turns
		}
		limit := max(500, min(maxShown, maxGroup/max(1, len(list))))
		for i, t := range list {
			c := column{Index: i, trajectory: t}
			view.converse(&c, shared, limit)
			for k := range c.Histories {
				for m := range c.Histories[k].Turns {
					c.Histories[k].Turns[m].More = "" // it is not stored yet: there is no address of the whole text
				}
			}
			d.Columns = append(d.Columns, c)
		}
	}
	return &page{name: "judge.html", Title: "Judge", Data: d, Crumbs: []crumb{{"judge", ""}}}, nil
}

// judged takes the form of the page.
func (h *Handler) judged(r *http.Request) (to string, err error) {
	if h.opts.Judge == nil {
		return "", notFound("nobody judges here: the program that trains has no dash.Judge")
	}
	id, err := strconv.Atoi(r.PostForm.Get("id"))
	if err != nil {
		return "", badRequest("id is %q", r.PostForm.Get("id"))
	}
	mode := "rank"
	if r.PostForm.Get("mode") == "score" {
		mode = "score"
	}
	v := verdict{drop: r.PostForm.Get("drop") != "", note: strings.TrimSpace(r.PostForm.Get("note"))}
	if !v.drop {
		if v.scores, err = scoresOf(r, mode); err != nil {
			return "", err
		}
	}
	if err := h.opts.Judge.decide(id, v); err != nil {
		return "", err
	}
	return link("judge", "mode", mode), nil
}

// scoresOf reads the fields v0, v1 and so on.
func scoresOf(r *http.Request, mode string) ([]float64, error) {
	var list []float64
	for i := 0; ; i++ {
		name := fmt.Sprintf("v%d", i)
		if !r.PostForm.Has(name) {
			break
		}
		text := strings.TrimSpace(r.PostForm.Get(name))
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !finite(v) {
			return nil, badRequest("answer %d has the %s %q: give every answer a number", i+1, mode, text)
		}
		list = append(list, v)
	}
	if mode == "score" {
		return list, nil
	}
	scores, err := rankScores(list)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	return scores, nil
}
