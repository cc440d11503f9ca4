package dash

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

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
		d.show(w.group)
	}
	return &page{name: "judge.html", Title: "Judge", Data: d, Crumbs: []crumb{{"judge", ""}}}, nil
}

// show makes the columns, in the order of the attempts and without the rewards: they would sway the judge.
func (d *judgeData) show(g *art.TrajectoryGroup) {
	view := groupData{place: &place{}}
	shared := sharedMessages(g.Trajectories)
	if shared > 0 {
		d.Shared = view.conversation(&art.History{Messages: g.Trajectories[0].Messages[:shared]}, 0, 0, maxShown).Turns
	}
	limit := max(500, min(maxShown, maxGroup/max(1, len(g.Trajectories))))
	for i, t := range g.Trajectories {
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
