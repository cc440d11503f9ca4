package migrate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// lines is a file of trajectories in the form of ART 0.4, by the fields that its trajectories have.
const lines = `{"trajectories": [{"messages_and_choices": [{"role": "user", "content": "What is at x?"}, ` +
	`{"finish_reason": "tool_calls", "index": 0, "logprobs": {"content": [{"token": "token_id:7", "logprob": -0.25}]}, ` +
	`"message": {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", ` +
	`"function": {"name": "look", "arguments": "{\"at\": \"x\"}"}}]}}, ` +
	`{"role": "tool", "tool_call_id": "c1", "content": "a lamp"}, ` +
	`{"finish_reason": "stop", "index": 0, "logprobs": null, "message": {"role": "assistant", "content": "A lamp."}}], ` +
	`"tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}], ` +
	`"additional_histories": [{"messages_and_choices": [{"role": "user", "content": "Sub"}, ` +
	`{"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": "Yes"}}], "tools": null}], ` +
	`"reward": 0.75, "metrics": {"right": true, "turns": 2, "none": null}, "metadata": {"seed": 3, "x": 0.5, "ok": false}, ` +
	`"logs": ["line"]}], "exceptions": [{"type": "ValueError", "message": "no", "traceback": "at f"}]}
`

// folder writes the files of a run of ART.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "proj", "models", "agent")
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun_JSONL(t *testing.T) {
	dir := folder(t, map[string]string{
		"trajectories/train/0000.jsonl": lines, "trajectories/val/0002.jsonl": lines + "prose\n",
		"trajectories/val/last.jsonl": lines, "0001/adapter_config.json": `{"base_model_name_or_path": "Qwen/Qwen3-0.6B"}`,
		"0001/adapter_model.safetensors": "weights",
		"history.jsonl": `{"train/reward": 0.25, "loss/train": -0.5, "training_step": 0, "recorded_at": "x"}
{"val/reward": 0.5, "step": 2}
{"step": "two"}
`,
	})
	root := t.TempDir()
	report, err := Run(dir, root, "proj", "agent", false)
	if err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(report.Problems, "\n")
	if report.Steps != 3 || report.Adapters != 1 || report.Files != 2 || report.Trajectories != 2 || report.Rows != 2 ||
		len(report.Problems) != 3 || !strings.Contains(problems, "history.jsonl:3") || !strings.Contains(problems, "line 2") {
		t.Errorf("%+v", report)
	}
	run, err := runs.Open(root, "proj", "agent", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if d := run.Damage(); !reflect.DeepEqual(d, runs.Damage{}) {
		t.Errorf("the copy is damaged: %+v", d)
	}
	for split, step := range map[string]int{"train": 0, "val": 2} {
		groups, err := run.ReadTrajectories(split, step)
		if err != nil || len(groups) != 1 {
			t.Fatalf("%s: %d groups, %v", split, len(groups), err)
		}
		checkGroup(t, groups[0])
	}
	rows, err := run.History()
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{"train/reward": 0.25, "loss/train": -0.5} {
		if got, ok := art.Logged(rows, key, 0); !ok || got != want {
			t.Errorf("%s is %v", key, got)
		}
	}
	if got, ok := art.Logged(rows, "val/reward", 2); !ok || got != 0.5 {
		t.Errorf("val/reward is %v", got)
	}
	var model map[string]any
	if _, err := run.ReadModel(&model); err != nil || model["base"] != "Qwen/Qwen3-0.6B" {
		t.Errorf("%v, %v", model, err)
	}
	if _, err := Run(dir, root, "proj", "agent", false); err == nil {
		t.Error("a run that is there is written again")
	}
}

// Runs that versions of openpipe-art wrote themselves are read whole: testdata/write_runs.py.
func TestRun_WrittenByART(t *testing.T) {
	for version, has := range map[string]struct{ tools, additional bool }{
		"0.3.13": {}, // it stored no tools
		"0.4.12": {tools: true, additional: true},
		"0.5.18": {tools: true},
	} {
		t.Run(version, func(t *testing.T) {
			root := t.TempDir()
			report, err := Run(filepath.Join("testdata", "art-"+version, "run"), root, "proj", "agent", false)
			if err != nil || report.Trajectories != 3 || report.Groups != 2 || report.Rows != 1 || len(report.Problems) > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			run, err := runs.Open(root, "proj", "agent", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			groups, err := run.ReadTrajectories("val", 2)
			if err != nil || len(groups) != 2 {
				t.Fatalf("%d groups, %v", len(groups), err)
			}
			checkWritten(t, groups)
			x := groups[0].Trajectories[0]
			if (len(x.Tools) == 1) != has.tools || (len(x.AdditionalHistories) == 1) != has.additional {
				t.Errorf("%d tools, %d additional histories", len(x.Tools), len(x.AdditionalHistories))
			}
			rows, err := run.History()
			if got, ok := art.Logged(rows, "val/reward", 2); err != nil || !ok || got > -0.41 || got < -0.42 {
				t.Errorf("val/reward is %v, %v", got, err)
			}
		})
	}
}

// checkWritten compares groups with those of testdata/write_runs.py.
func checkWritten(t *testing.T, groups []*art.TrajectoryGroup) {
	t.Helper()
	x, m := groups[0].Trajectories[0], groups[0].Trajectories[0].Messages
	if x.Reward != 0.75 || x.Metrics["right"] != 1 || x.Metrics["turns"] != 2 || x.Metadata["seed"] != 3 ||
		x.Metadata["day"] != "2025-01-02" || len(x.Logs) != 1 || x.Logs[0] != "first line" ||
		x.Metadata[trainableKey] == nil || groups[1].Trajectories[0].Reward != -1 {
		t.Errorf("%+v", x)
	}
	if len(m) != 5 || m[0].Role != art.RoleSystem || m[2].ToolCalls[0].Arguments != `{"at": "x"}` ||
		m[3].ToolCallID != "c1" || m[4].Content != "A lamp – yes: 1\n2" {
		t.Errorf("%+v", m)
	}
}

// checkGroup compares a group with lines.
func checkGroup(t *testing.T, g *art.TrajectoryGroup) {
	t.Helper()
	x := g.Trajectories[0]
	m := x.Messages
	if x.Reward != 0.75 || x.Metrics["right"] != 1 || x.Metrics["turns"] != 2 || len(x.Metrics) != 2 ||
		x.Metadata["seed"] != 3 || x.Metadata["x"] != 0.5 || x.Metadata["ok"] != false || x.Logs[0] != "line" ||
		x.Metadata[trainableKey] != "1,3,1/1" || len(x.Tools) != 1 || x.Tools[0].Name != "look" {
		t.Errorf("%+v", x)
	}
	if len(m) != 4 || m[1].ToolCalls[0].Arguments != `{"at": "x"}` || m[2].ToolCallID != "c1" ||
		m[3].Content != "A lamp." || len(x.Samples()) > 0 || x.AdditionalHistories[0].Messages[1].Content != "Yes" {
		t.Errorf("%+v", m)
	}
	text, err := json.Marshal(m[1])
	if err != nil || !strings.Contains(strings.ReplaceAll(string(text), " ", ""), `"logprob":-0.25`) {
		t.Errorf("the choice is lost: %s, %v", text, err)
	}
	if f := g.Failures; len(f) != 1 || f[0].Type != "ValueError" || f[0].Stack != "at f" || f[0].Attempt != 1 {
		t.Errorf("%+v", f)
	}
}

func TestRun_Refused(t *testing.T) {
	root := t.TempDir()
	if _, err := Run(filepath.Join(root, "none"), root, "p", "n", false); err == nil {
		t.Error("a folder that is not there")
	}
	if _, err := Run(folder(t, map[string]string{"README": "x"}), root, "p", "n", false); err == nil {
		t.Error("a folder without a run")
	}
	dir := folder(t, map[string]string{"trajectories/train/0000.jsonl": lines})
	report, err := Run(dir, root, "p", "dry", true)
	if err != nil || report.Trajectories != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := os.Stat(filepath.Join(root, "p")); err == nil {
		t.Error("a dry run writes")
	}
}

// Both kinds of Parquet files are read, and say the same: testdata/make.py.
func TestReadParquet(t *testing.T) {
	for _, file := range []string{"columns", "json"} {
		groups, err := readParquet(filepath.Join("testdata", file+".parquet"))
		if err != nil || len(groups) != 2 || len(groups[0].Trajectories) != 2 {
			t.Fatalf("%s: %d groups, %v", file, len(groups), err)
		}
		x, m := groups[0].Trajectories[0], groups[0].Trajectories[0].Messages
		if x.Reward != 0.75 || x.Metrics["right"] != 1 || x.Metadata["seed"] != 3 || x.Metadata[trainableKey] != "2,4" ||
			len(x.Tools) != 1 || x.Logs[0] != "first line" || groups[1].Trajectories[0].Reward != -1 {
			t.Errorf("%s: %+v", file, x)
		}
		if len(m) != 5 || m[4].Content != "A lamp – yes." || m[2].ToolCalls[0].Name != "look" || m[3].ToolCallID != "c1" ||
			groups[0].Metrics["cost"] != 0.5 || groups[0].Metadata["scenario"] != "s1" {
			t.Errorf("%s: %+v", file, m)
		}
	}
	damaged := filepath.Join(t.TempDir(), "0000.parquet")
	if err := os.WriteFile(damaged, []byte("PAR1 and no more PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if groups, err := readParquet(damaged); err == nil {
		t.Errorf("a damaged file is %d groups", len(groups))
	}
}

// Any file is read, or is a problem.
func FuzzGroup(f *testing.F) {
	f.Add([]byte(lines))
	f.Add([]byte(`{"trajectories": [{"messages_and_choices": [{"message": {}}], "reward": 1e999}]}`))
	f.Add([]byte("- trajectories:\n  - messages_and_choices: &a\n    - {role: user, content: x}\n    reward: .nan\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "0000.jsonl")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		groups, _ := readJSONL(path)
		more, _ := readYAML(path)
		for _, g := range append(groups, more...) {
			for _, x := range g.Trajectories {
				for _, m := range x.Messages {
					if m.Role == "" || m.Sample != nil {
						t.Fatalf("%+v", m)
					}
				}
			}
		}
	})
}
