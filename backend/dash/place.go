package dash

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// place is what a page of trajectories shows: a split of a run at a step.
type place struct {
	run        *run
	Run, Split string
	Step       int
	Steps      []int  // that have trajectories of the split
	index      *index // of the step
	p          *params
}

// placeOf reads run, split and step. Without a split it is val, or what there is; without a step the newest.
func (h *Handler) placeOf(r *http.Request) (*place, error) {
	p := paramsOf(r)
	found, err := h.store.find(p.Get("run"))
	if err != nil {
		return nil, err
	}
	at := &place{run: found, Run: found.name, Split: p.Get("split"), p: p}
	if splits := at.Splits(); at.Split == "" && len(splits) > 0 {
		at.Split = splits[0]
		for _, better := range []string{"train", "val"} {
			if found.splits[better] != nil {
				at.Split = better
			}
		}
	}
	at.Steps = found.splits[at.Split]
	if len(at.Steps) == 0 {
		return nil, notFound("%s has no trajectories of split %q", found.name, at.Split)
	}
	at.Step = p.number("step", at.Steps[len(at.Steps)-1])
	if p.err != nil {
		return nil, p.err
	}
	at.index, err = h.store.index(found, at.Split, at.Step) // which there is only for steps with trajectories
	return at, err
}

// Link is the address of a page about this place.
func (at *place) Link(path string, params ...any) string {
	return link(path, append([]any{"run", at.Run, "split", at.Split, "step", at.Step}, params...)...)
}

// Prev and Next are the steps beside, -1 for none.
func (at *place) Prev() int { return at.beside(-1) }

// Next is the step behind, -1 for none.
func (at *place) Next() int { return at.beside(1) }

func (at *place) beside(by int) int {
	i := slices.Index(at.Steps, at.Step) + by
	if i < 0 || i >= len(at.Steps) {
		return -1
	}
	return at.Steps[i]
}

// Splits are the splits of the run that have trajectories.
func (at *place) Splits() []string { return sortedKeys(at.run.splits) }

// crumbs is the way to a page about this place.
func (at *place) crumbs(more ...crumb) []crumb {
	return append([]crumb{{at.Run, link("run", "run", at.Run)},
		{fmt.Sprintf("%s, step %d", at.Split, at.Step), at.Link("groups")}}, more...)
}

// row returns the metrics that were logged for the place.
func (at *place) row() map[string]float64 {
	for _, row := range at.run.rows {
		if row.Split == at.Split && row.Step == at.Step {
			return row.Metrics
		}
	}
	return nil
}

// weighing says how rewards of a group become advantages.
type weighing struct {
	LeaveOne, Unscaled bool
	Tolerance          float64
	// Note says what the page computes where it is not what the trainer did.
	Note string
}

// weighing returns that of the update from the step of a place, as far as it is known.
func (at *place) weighing() weighing {
	w := weighing{Tolerance: 1e-12}
	if at.Split != "train" {
		return w
	}
	var update struct {
		Train *art.TrainConfig `json:"train"`
	}
	path := filepath.Join(at.run.Dir(), "checkpoints", fmt.Sprintf("%04d", at.Step+1), "update.json")
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &update) != nil || update.Train == nil {
		return w // the run keeps fewer checkpoints, or another backend has made it
	}
	c := update.Train
	w.LeaveOne, w.Unscaled = c.Baseline == credit.BaselineLeaveOne, c.Scale == credit.ScaleNone
	if c.VarianceTolerance > 0 {
		w.Tolerance = c.VarianceTolerance
	}
	if c.Objective != "" && c.Objective != credit.ObjectiveMean || c.Scale == credit.ScaleBatch {
		w.Note = fmt.Sprintf("The update had objective %s and scale %s; shown is the reward less the mean of the group, "+
			"over its standard deviation.", c.Objective, c.Scale)
		w.Unscaled = false
	}
	return w
}

// advantages returns how much better each reward is than its group, and why there is nothing to learn from it, if so:
//
//	(reward - mean) / (std + 1e-6)
//
// without the division when it is unscaled, and with the mean of the others for leave-one-out. What a training makes of
// them for the whole batch is not in it.
func (w weighing) advantages(rewards []float64) ([]float64, credit.Reason) {
	n := float64(len(rewards))
	out := make([]float64, len(rewards))
	var sum, squares, largest float64
	for _, r := range rewards {
		if !finite(r) {
			return out, credit.ReasonBadReward
		}
		sum, largest = sum+r, max(largest, math.Abs(r))
	}
	switch {
	case len(rewards) == 0:
		return nil, credit.ReasonEmptyGroup
	case len(rewards) == 1:
		return out, credit.ReasonSingleton
	case slices.Max(rewards)-slices.Min(rewards) <= w.Tolerance*largest:
		return out, credit.ReasonNoVariance
	}
	mean := sum / n
	for _, r := range rewards {
		squares += (r - mean) * (r - mean)
	}
	for i, r := range rewards {
		out[i] = r - mean
		if w.LeaveOne {
			out[i] *= n / (n - 1)
		}
		if !w.Unscaled {
			out[i] /= math.Sqrt(squares/n) + 1e-6
		}
	}
	return out, ""
}

// params are the parameters of an address. The first that is invalid is the error.
type params struct {
	url.Values
	err error
}

// paramsOf reads the address. Characters that would not be seen are left out: parameters come back in forms.
func paramsOf(r *http.Request) *params {
	p := &params{Values: url.Values{}}
	for name, values := range r.URL.Query() {
		for _, v := range values {
			p.Add(name, strings.Map(func(r rune) rune {
				if isHidden(r) {
					return -1
				}
				return r
			}, strings.ToValidUTF8(v, "")))
		}
	}
	return p
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = badRequest(format, args...)
	}
}

// number returns a number that is not negative.
func (p *params) number(name string, fallback int) int {
	text := p.Get(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		p.fail("%s is %q, want a number of 0 or more", name, text)
		return fallback
	}
	return n
}

// float returns a finite number, or fallback, which may be infinite.
func (p *params) float(name string, fallback float64) float64 {
	text := strings.TrimSpace(p.Get(name))
	if text == "" {
		return fallback
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !finite(v) {
		p.fail("%s is %q, want a number", name, text)
		return fallback
	}
	return v
}

// choice returns one of some values, the first by default.
func (p *params) choice(name string, of ...string) string {
	text := p.Get(name)
	if text == "" {
		return of[0]
	}
	if !slices.Contains(of, text) {
		p.fail("%s is %q, want one of %s", name, text, strings.Join(of, ", "))
		return of[0]
	}
	return text
}

// with returns the address of a page with these parameters, some of which are changed: name and value in turn.
func (p *params) with(path string, changes ...string) string {
	query := maps.Clone(p.Values)
	for i := 0; i+1 < len(changes); i += 2 {
		query.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			query.Del(changes[i])
		}
	}
	return localURL(path, query)
}
