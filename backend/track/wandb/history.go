package wandb

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// keyStep is the x-axis, as in ART.
const keyStep = "training_step"

// history makes the rows of a run.
type history struct {
	own      bool // keep the names of this library
	start    time.Time
	next     int            // _step of the next row
	sections []string       // whose metrics are defined, in order
	summary  map[string]any // the last value of each key
}

func newHistory(own bool, start time.Time) *history {
	return &history{own: own, start: start, summary: map[string]any{}}
}

// row returns a row of W&B: values by key, with W&B's own keys.
func (h *history) row(at time.Time, step int, values map[string]any) map[string]any {
	row := map[string]any{
		keyStep: step, "_step": h.next, "_timestamp": float64(at.UnixMilli()) / 1e3,
		"_runtime": max(0, at.Sub(h.start).Seconds()),
	}
	maps.Copy(row, values)
	h.next++
	maps.Copy(h.summary, row)
	return row
}

// values translates metrics.
func (h *history) values(metrics map[string]float64) map[string]any {
	out := make(map[string]any, len(metrics))
	for key, x := range metrics {
		out[h.name(key, artNames)] = track.Number(x)
	}
	return out
}

// numberOf is the inverse of [track.Number].
func numberOf(v any) (x float64, ok bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		switch v {
		case "NaN":
			return math.NaN(), true
		case "Infinity":
			return math.Inf(1), true
		case "-Infinity":
			return math.Inf(-1), true
		}
	}
	return 0, false
}

// define returns the globs of the sections that are new in a row.
func (h *history) define(row map[string]any) []string {
	var globs []string
	for _, key := range slices.Sorted(maps.Keys(row)) {
		section, _, ok := strings.Cut(key, "/")
		if ok && !slices.Contains(h.sections, section) {
			h.sections = append(h.sections, section)
			globs = append(globs, section+"/*")
		}
	}
	return globs
}

// read takes a row that an earlier process has stored, and adds its metrics to values.
func (h *history) read(row map[string]any, values track.Values) {
	at, okAt := row["_timestamp"].(float64)
	if passed, ok := row["_runtime"].(float64); ok && okAt {
		h.start = time.UnixMilli(int64((at - passed) * 1e3)) // the same of each row
	}
	if n, ok := row["_step"].(float64); ok {
		h.next = max(h.next, int(n)+1)
	}
	maps.Copy(h.summary, row)
	step, ok := row[keyStep].(float64)
	if !ok {
		return
	}
	metrics := values[int(step)]
	if metrics == nil {
		metrics = map[string]float64{}
		values[int(step)] = metrics
	}
	for key, v := range row {
		if x, ok := numberOf(v); ok && key != keyStep && !strings.HasPrefix(key, "_") {
			metrics[h.name(key, ownNames)] = x
		}
	}
}

// artNames are the names of ART 0.5.23 for metrics that are the same, so that its dashboards show them. Others keep
// their names, which are ART's too where docs/coming-from-art.md says so.
var artNames = map[string]string{
	"loss/policy":                  "loss/train",
	"loss/kl_old_new":              "loss/kl_div",
	"loss/clipped_fraction":        "loss/clipped_token_fraction",
	"data/groups":                  "data/step_num_groups_submitted",
	"data/groups_trainable":        "data/step_num_groups_trainable",
	"data/trajectories":            "data/step_num_trajectories",
	"data/updates":                 "data/step_num_gradient_steps",
	"data/cum/updates":             "data/cum/num_gradient_steps",
	"data/tokens_sampled":          "data/step_rollout_tokens",
	"data/tokens_trained":          "data/step_trainable_assistant_tokens",
	"data/tokens_computed":         "data/step_executed_token_equivalents",
	"time/train_s":                 "time/step_backend_train_s",
	"throughput/train_tok_per_s":   "throughput/avg_trainer_tok_per_s",
	"throughput/rollout_tok_per_s": "throughput/avg_rollout_tok_per_s",
}

// ownNames is the inverse of artNames.
var ownNames = func() map[string]string {
	own := make(map[string]string, len(artNames))
	for name, art := range artNames {
		own[art] = name
	}
	return own
}()

// name translates the name of a metric: to W&B by artNames, back by ownNames.
func (h *history) name(key string, by map[string]string) string {
	if h.own {
		return key
	}
	return cmp.Or(by[key], key)
}

// columns of a table of trajectories.
var columns = []string{"group", "attempt", "reward", "advantage", "tokens", "conversation", "metrics"}

// table returns the file of a table with up to n trajectories, and the value of a row that shows it.
func table(g track.Groups, n int) (name string, file []byte, value map[string]any, err error) {
	rows := [][]any{}
	for i, group := range g.Groups {
		if group == nil {
			continue
		}
		for j, t := range group.Trajectories {
			if t != nil && len(rows) < n {
				rows = append(rows, tableRow(g, t, i, j))
			}
		}
	}
	file, err = json.Marshal(map[string]any{"columns": columns, "data": rows})
	if err != nil {
		return "", nil, nil, err
	}
	sum := sha256.Sum256(file)
	digest := hex.EncodeToString(sum[:])
	name = path.Join("media", "table", g.Split, fmt.Sprintf("trajectories_%d_%s.table.json", g.Step, digest[:20]))
	return name, file, map[string]any{
		"_type": "table-file", "path": name, "sha256": digest, "size": len(file), "ncols": len(columns), "nrows": len(rows),
	}, nil
}

func tableRow(g track.Groups, t *art.Trajectory, group, attempt int) []any {
	var advantage any
	if group < len(g.Advantages) && attempt < len(g.Advantages[group]) {
		if a := g.Advantages[group][attempt]; a == a { // not NaN
			advantage = a
		}
	}
	tokens := 0
	for _, s := range t.Samples() {
		tokens += len(s.IDs)
	}
	return []any{group, attempt, track.Number(t.Reward), advantage, tokens, conversation(t), asJSON(finite(t.Metrics))}
}

// maxCell bounds the conversation in a table, in bytes: people read the beginning, and the run directory has all of it.
const maxCell = 64 << 10

// conversation writes what was said, up to maxCell.
func conversation(t *art.Trajectory) string {
	var b strings.Builder
	part := func(text string) string { return track.Shorten(text, maxCell) }
	for _, h := range t.Histories() {
		for i := range h.Messages {
			m := &h.Messages[i]
			fmt.Fprintf(&b, "%s: %s%s\n", m.Role, part(m.Reasoning), part(m.Content))
			for _, call := range m.ToolCalls {
				fmt.Fprintf(&b, "  -> %s(%s)\n", part(call.Name), part(call.Arguments))
			}
			if b.Len() > maxCell {
				return part(b.String())
			}
		}
	}
	return b.String()
}

// finite returns numbers in a form that has JSON.
func finite(metrics map[string]float64) map[string]any {
	out := make(map[string]any, len(metrics))
	for key, x := range metrics {
		out[key] = track.Number(x)
	}
	return out
}
