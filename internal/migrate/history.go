package migrate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

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
