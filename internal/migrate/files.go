package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"
	"go.yaml.in/yaml/v3"

	"github.com/goart-dev/art"
)

// readJSONL reads a file of groups, one a line. Groups before a line that cannot be read are returned with the error.
func readJSONL(path string) (groups []*art.TrajectoryGroup, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range bytes.Split(content, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		g, err := parseGroup(line)
		if err != nil {
			return groups, fmt.Errorf("line %d: %w", i+1, err)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// readYAML reads a file of groups as ART 0.3 wrote it: a list. A file that cannot be read has no groups.
func readYAML(path string) (groups []*art.TrajectoryGroup, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []any
	if err := yaml.Unmarshal(content, &list); err != nil {
		return nil, err
	}
	for i, item := range list {
		var g *art.TrajectoryGroup
		text, err := json.Marshal(item) // not of NaN, or of a key that is no text
		if err == nil {
			g, err = parseGroup(text)
		}
		if err != nil {
			return groups, fmt.Errorf("group %d: %w", i, err)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// parseGroup reads a group of JSON.
func parseGroup(text []byte) (*art.TrajectoryGroup, error) {
	var g groupJSON
	if err := json.Unmarshal(text, &g); err != nil {
		return nil, err
	}
	return g.group()
}

// parquetRow has the columns of both versions: that with JSON, and that with messages.
type parquetRow struct {
	GroupIndex      *int64           `parquet:"group_index,optional"`
	TrajectoryIndex *int64           `parquet:"trajectory_index,optional"`
	GroupJSON       *string          `parquet:"group_json,optional"`
	TrajectoryJSON  *string          `parquet:"trajectory_json,optional"`
	GroupMetadata   *string          `parquet:"group_metadata,optional"`
	GroupMetrics    *string          `parquet:"group_metrics,optional"`
	GroupLogs       []string         `parquet:"group_logs,list"`
	Reward          *float64         `parquet:"reward,optional"`
	Metrics         *string          `parquet:"metrics,optional"`
	Metadata        *string          `parquet:"metadata,optional"`
	Tools           *string          `parquet:"tools,optional"`
	Logs            []string         `parquet:"logs,list"`
	Messages        []parquetMessage `parquet:"messages,list"`
}

type parquetMessage struct {
	Role       *string `parquet:"role,optional"`
	Content    *string `parquet:"content,optional"`
	ToolCalls  *string `parquet:"tool_calls,optional"`
	ToolCallID *string `parquet:"tool_call_id,optional"`
	Trainable  *bool   `parquet:"trainable,optional"`
}

// readParquet reads a file of either version.
func readParquet(path string) (groups []*art.TrajectoryGroup, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on some damage
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	rows, err := parquet.ReadFile[parquetRow](path)
	if err != nil {
		return nil, err
	}
	var order []int64
	byIndex := map[int64]*groupJSON{}
	for i := range rows {
		index := int64(0)
		if rows[i].GroupIndex != nil {
			index = *rows[i].GroupIndex
		}
		if byIndex[index] == nil {
			if byIndex[index], err = rows[i].groupJSON(); err != nil {
				return nil, fmt.Errorf("row %d: %w", i, err)
			}
			order = append(order, index)
		}
		raw, err := rows[i].trajectoryJSON()
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		if raw != nil {
			byIndex[index].Trajectories = append(byIndex[index].Trajectories, raw)
		}
	}
	for _, index := range order {
		g, err := byIndex[index].group()
		if err != nil {
			return groups, fmt.Errorf("group %d: %w", index, err)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// groupJSON is what a row says of its group.
func (r *parquetRow) groupJSON() (*groupJSON, error) {
	g := &groupJSON{Logs: r.GroupLogs}
	if r.GroupJSON != nil {
		return g, json.Unmarshal([]byte(*r.GroupJSON), g)
	}
	for _, part := range []struct {
		text *string
		to   any
	}{{r.GroupMetadata, &g.Metadata}, {r.GroupMetrics, &g.Metrics}} {
		if part.text != nil {
			if err := json.Unmarshal([]byte(*part.text), part.to); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

// trajectoryJSON is the trajectory of a row, nil for a group without any.
func (r *parquetRow) trajectoryJSON() (json.RawMessage, error) {
	if r.TrajectoryJSON != nil {
		return json.RawMessage(*r.TrajectoryJSON), nil
	}
	if r.Reward == nil && r.Messages == nil || r.GroupJSON != nil {
		return nil, nil
	}
	t := map[string]any{"logs": r.Logs}
	if r.Reward != nil {
		t["reward"] = *r.Reward
	}
	for name, text := range map[string]*string{"metrics": r.Metrics, "metadata": r.Metadata, "tools": r.Tools} {
		if text != nil {
			t[name] = json.RawMessage(*text)
		}
	}
	messages := []any{}
	for i := range r.Messages {
		messages = append(messages, r.Messages[i].json())
	}
	t["messages_and_choices"] = messages
	return json.Marshal(t)
}

// json is the message, within a choice when ART trained on it.
func (m *parquetMessage) json() any {
	object := map[string]any{"role": m.Role, "content": m.Content}
	if m.ToolCalls != nil {
		object["tool_calls"] = json.RawMessage(*m.ToolCalls)
	}
	if m.ToolCallID != nil {
		object["tool_call_id"] = *m.ToolCallID
	}
	if m.Trainable != nil && *m.Trainable {
		return map[string]any{"message": object}
	}
	return object
}

// splits are those of ART, the prefixes of keys.
var splits = map[string]bool{"train": true, "val": true, "test": true, "discarded": true, "sft": true}

// readHistory reads history.jsonl. A key without a split belongs to the splits of its row, and to train in a row
// without any.
func (s *source) readHistory() {
	path := filepath.Join(s.dir, "history.jsonl")
	file, err := os.Open(path)
	if err != nil {
		return // of 0.3, and of models that nothing was logged for
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20)
	for line := 1; scanner.Scan(); line++ {
		if strings.TrimSpace(scanner.Text()) == "" {
			continue
		}
		if err := s.readRow(scanner.Bytes()); err != nil {
			s.problem(fmt.Sprintf("%s:%d", path, line), err)
		}
	}
	if err := scanner.Err(); err != nil {
		s.problem(path, err)
	}
}

// readRow reads one row.
func (s *source) readRow(line []byte) error {
	var row map[string]any
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	number, ok := row["training_step"].(float64)
	if !ok {
		number, ok = row["step"].(float64)
	}
	if !ok || number < 0 || number != float64(int(number)) {
		return fmt.Errorf("it has no step")
	}
	parts, shared := map[string]map[string]float64{}, map[string]float64{}
	for name, value := range row {
		x, ok := value.(float64)
		if !ok || name == "step" || name == "training_step" {
			continue
		}
		split, _, _ := strings.Cut(name, "/")
		if !splits[split] {
			shared[name] = x
			continue
		}
		if parts[split] == nil {
			parts[split] = map[string]float64{}
		}
		parts[split][name] = x
	}
	if len(parts) == 0 {
		parts["train"] = map[string]float64{}
	}
	for split, metrics := range parts {
		k := key{split, int(number)}
		if s.rows[k] == nil {
			s.rows[k] = map[string]float64{}
		}
		maps.Copy(s.rows[k], shared)
		maps.Copy(s.rows[k], metrics)
	}
	return nil
}
