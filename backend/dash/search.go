package dash

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

const (
	maxHits      = 100
	searchBudget = 3 * time.Second
)

// searchData are the trajectories of a run that pass a filter.
type searchData struct {
	Run, Split   string
	Splits       []string
	Step         string // "" is all
	Filter       filter
	Hits         []hit
	Full         bool // there may be more
	Left, Looked int  // steps that were not searched in time, and that were
	Asked        bool
	Seconds      string
}

// hit is a trajectory, or a failure.
type hit struct {
	Link, Split             string
	Step, Group, Trajectory int
	Reward, Role, Failure   string
	Snippet                 template.HTML
}

// searchPage searches the trajectories of a run, the newest steps first.
func (h *Handler) searchPage(r *http.Request) (*page, error) {
	p := paramsOf(r)
	found, err := h.store.find(p.Get("run"))
	if err != nil {
		return nil, err
	}
	d := &searchData{Run: found.name, Split: p.Get("split"), Step: p.Get("step"), Filter: filterOf(p)}
	step := p.number("step", -1)
	if p.err != nil {
		return nil, p.err
	}
	d.Asked = d.Filter.Text != "" || d.Filter.Tool != "" || d.Filter.Failed || d.Filter.MinText()+d.Filter.MaxText() != ""
	d.Splits = sortedKeys(found.splits)
	if d.Asked {
		if err := d.search(h.store, found, step); err != nil {
			return nil, err
		}
	}
	return &page{name: "search.html", Title: "Search " + found.name, Data: d,
		Crumbs: []crumb{{found.name, link("run", "run", found.name)}, {"search", ""}}}, nil
}

// search looks through the files, the newest step first, until there is enough or the time is over.
func (d *searchData) search(s *store, r *run, step int) error {
	type file struct {
		split string
		step  int
	}
	var files []file
	for split, steps := range r.splits {
		for _, k := range steps {
			if (d.Split == "" || d.Split == split) && (step < 0 || step == k) {
				files = append(files, file{split, k})
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(cmp.Compare(b.step, a.step), strings.Compare(a.split, b.split))
	})
	began := time.Now()
	for i := 0; i < len(files) && !d.Full; i++ {
		if time.Since(began) > searchBudget {
			d.Left = len(files) - i
			break
		}
		if err := d.searchFile(s, r, files[i].split, files[i].step); err != nil {
			return err
		}
		d.Looked++
	}
	d.Seconds = duration(time.Since(began))
	return nil
}

// searchFile looks through one file.
func (d *searchData) searchFile(s *store, r *run, split string, step int) error {
	at := &place{Run: r.name, Split: split, Step: step}
	x, err := s.index(r, split, step)
	if err != nil {
		return err
	}
	if d.Filter.Failed {
		for _, g := range x.groups {
			for _, f := range g.failures {
				text := f.Type + ": " + f.Message
				if !contains(text, d.Filter.Text) {
					continue
				}
				if d.Full = len(d.Hits) >= maxHits; d.Full {
					return nil
				}
				d.Hits = append(d.Hits, hit{Link: at.Link("group", "group", g.number), Split: split, Step: step, Group: g.number,
					Trajectory: f.Attempt, Failure: oneLine(text, 200)})
			}
		}
		return nil
	}
	rewards := map[[2]int]float64{}
	for _, e := range x.entries {
		if e.Trajectory >= 0 && e.Reward >= d.Filter.Min && e.Reward <= d.Filter.Max {
			rewards[[2]int{e.Group, e.Trajectory}] = e.Reward
		}
	}
	if len(rewards) == 0 {
		return nil
	}
	return r.Texts(split, step, func(group, trajectory int, messages []art.Message) bool {
		reward, ok := rewards[[2]int{group, trajectory}]
		if !ok {
			return true
		}
		role, snippet, ok := d.Filter.find(messages)
		if ok {
			d.Hits = append(d.Hits, hit{Link: at.Link("group", "group", group) + fmt.Sprintf("#t%d", trajectory), Split: split,
				Step: step, Group: group, Trajectory: trajectory, Reward: number(reward), Role: role, Snippet: snippet})
		}
		d.Full = len(d.Hits) >= maxHits
		return !d.Full
	})
}

// contains reports whether a text contains another, in any case.
func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// find returns where a conversation has the text, and whether it has all that is asked for.
func (f filter) find(messages []art.Message) (role string, snippet template.HTML, ok bool) {
	if f.Tool != "" && !slices.ContainsFunc(messages, func(m art.Message) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c art.ToolCall) bool { return contains(c.Name, f.Tool) })
	}) {
		return "", "", false
	}
	for _, m := range messages {
		texts := []string{m.Content, m.Reasoning}
		for _, c := range m.ToolCalls {
			texts = append(texts, c.Name+" "+c.Arguments)
		}
		for _, text := range texts {
			if at := indexFold(text, f.Text); f.Text != "" && at >= 0 {
				return string(m.Role), excerpt(text, at, len(f.Text)), true
			}
		}
	}
	if f.Text != "" {
		return "", "", false
	}
	for _, m := range slices.Backward(messages) {
		if m.Content != "" {
			return string(m.Role), visible(oneLine(m.Content, 160)), true
		}
	}
	return "", "", true
}

// indexFold returns where a text has another, in any case, -1 for nowhere. Where folding changes the length of the
// text, the place is that of the beginning.
func indexFold(text, part string) int {
	lower := strings.ToLower(text)
	at := strings.Index(lower, strings.ToLower(part))
	if at >= 0 && len(lower) != len(text) {
		return 0
	}
	return at
}

// spaces is what is shown as one space.
var spaces = regexp.MustCompile(`\s+`)

// excerpt is the text around a place, which is marked.
func excerpt(text string, at, n int) template.HTML {
	const around = 80
	from, to := max(0, at-around), min(len(text), at+n+around)
	part := func(from, to int) template.HTML {
		return visible(spaces.ReplaceAllString(strings.ToValidUTF8(text[from:to], ""), " "))
	}
	end := min(len(text), at+n)
	html := part(from, at) + "<mark>" + part(at, end) + "</mark>" + part(end, to)
	if from > 0 {
		html = "… " + html
	}
	if to < len(text) {
		html += " …"
	}
	return html
}
