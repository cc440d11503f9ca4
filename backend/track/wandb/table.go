package wandb

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

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
	return []any{group, attempt, number(t.Reward), advantage, tokens, conversation(t), asJSON(finite(t.Metrics))}
}

// maxCell bounds the conversation in a table, in bytes: people read the beginning, and the run directory has all of it.
const maxCell = 64 << 10

// conversation writes what was said, up to maxCell.
func conversation(t *art.Trajectory) string {
	var b strings.Builder
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

// part returns the first maxCell bytes, whole characters, and a mark where something is left out.
func part(text string) string {
	if len(text) <= maxCell {
		return text
	}
	n := maxCell
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + " ..."
}

// finite returns numbers in a form that has JSON.
func finite(metrics map[string]float64) map[string]any {
	out := make(map[string]any, len(metrics))
	for key, x := range metrics {
		out[key] = number(x)
	}
	return out
}
