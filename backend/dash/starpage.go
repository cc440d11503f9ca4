package dash

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
)

// starsData are the starred trajectories of a run.
type starsData struct {
	Run  string
	Path string
	Rows []starRow
}

// starRow is one of them.
type starRow struct {
	starOf
	Link  string
	First string // what was asked
	Last  string // what was answered in the end
}

// starsPage lists the starred trajectories of a run.
func (h *Handler) starsPage(r *http.Request) (*page, error) {
	found, err := h.store.find(r.URL.Query().Get("run"))
	if err != nil {
		return nil, err
	}
	lines, of, err := readStars(found.Dir())
	if err != nil {
		return nil, err
	}
	d := &starsData{Run: found.name, Path: found.Dir() + "/" + starsName}
	for i, line := range lines {
		var example art.Example
		if err := json.Unmarshal(line, &example); err != nil {
			return nil, err
		}
		row := starRow{starOf: of[i], Link: link("group", "run", found.name, "split", of[i].Split, "step", of[i].Step,
			"group", of[i].Group) + fmt.Sprintf("#t%d", of[i].Trajectory)}
		for _, m := range example.Messages {
			if m.Role == art.RoleUser {
				row.First = cmp.Or(row.First, oneLine(m.Content, 120))
			}
			if m.Role == art.RoleAssistant && m.Content != "" {
				row.Last = oneLine(m.Content, 120)
			}
		}
		d.Rows = append(d.Rows, row)
	}
	return &page{name: "stars.html", Title: "Starred in " + found.name, Runs: []string{found.name}, Data: d,
		Crumbs: []crumb{{found.name, link("run", "run", found.name)}, {"starred", ""}}}, nil
}

// starredOf returns which trajectories of a group are starred.
func (h *Handler) starredOf(at *place, group int) (map[int]bool, error) {
	list := map[int]bool{}
	if !h.opts.Stars {
		return list, nil
	}
	_, of, err := readStars(at.run.Dir())
	for _, s := range of {
		if s.Split == at.Split && s.Step == at.Step && s.Group == group {
			list[s.Trajectory] = true
		}
	}
	return list, err
}

// starred takes the form of a star.
func (h *Handler) starred(r *http.Request) (to string, err error) {
	if !h.opts.Stars {
		return "", &httpError{http.StatusForbidden,
			"the page is read-only: art runs dash --stars lets people star trajectories"}
	}
	found, err := h.store.find(r.PostForm.Get("run"))
	if err != nil {
		return "", err
	}
	of := starOf{Split: r.PostForm.Get("split")}
	for name, field := range map[string]*int{"step": &of.Step, "group": &of.Group, "trajectory": &of.Trajectory} {
		if *field, err = strconv.Atoi(r.PostForm.Get(name)); err != nil || *field < 0 {
			return "", badRequest("%s is %q, want a number", name, r.PostForm.Get(name))
		}
	}
	if !slices.Contains(found.splits[of.Split], of.Step) {
		return "", notFound("%s has no trajectories of split %q and step %d", found.name, of.Split, of.Step)
	}
	g, err := found.ReadGroup(of.Split, of.Step, of.Group)
	if err != nil {
		return "", err
	}
	if of.Trajectory >= len(g.Trajectories) {
		return "", notFound("the group has %s", quantity.Of(len(g.Trajectories), "trajectory"))
	}
	t := g.Trajectories[of.Trajectory]
	if err := h.stars.set(found.Dir(), of, t, r.PostForm.Get("on") != ""); err != nil {
		return "", err
	}
	return link("group", "run", found.name, "split", of.Split, "step", of.Step, "group", of.Group,
		"color", r.PostForm.Get("color"), "to", r.PostForm.Get("to"), "order", r.PostForm.Get("order"),
		"from", r.PostForm.Get("from")) + fmt.Sprintf("#t%d", of.Trajectory), nil
}
