package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/lora"
)

// trainedRun makes a run of three steps, the first of which is the best, in a folder that verbs look runs up in.
func trainedRun(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	t.Setenv("ART_DIR", root)
	b, err := local.Open(t.Context(), &local.Options{Dir: root, Progress: io.Discard, Slots: 8, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m := art.NewModel("player", &art.ModelOptions{Project: "games", Chat: art.ChatOptions{MaxTokens: new(4)}})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		groups, err := art.GatherGroups(t.Context(), []string{"yes or no", "7+5="},
			func(ctx context.Context, s string) (*art.Trajectory, error) {
				trajectory := art.NewTrajectory(art.System("Be brief."), art.User(s))
				reply, err := m.Chat(ctx, trajectory, nil)
				trajectory.Logs = append(trajectory.Logs, "because of its length")
				if err == nil {
					trajectory.Reward = float64(len(reply.Content) % 5)
				}
				return trajectory, err
			}, &art.GatherOptions{GroupSize: 4, Seed: uint64(step)})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Log(t.Context(), "val", groups, map[string]float64{"reward": float64(9 - step)}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-2}); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// wantOutput runs the command, which must succeed and print these texts.
func wantOutput(t *testing.T, args string, want ...string) string {
	t.Helper()
	status, stdout, stderr := command(strings.Fields(args)...)
	if status != 0 {
		t.Fatalf("art %s: status %d: %s", args, status, stderr)
	}
	for _, text := range want {
		if !strings.Contains(stdout, text) {
			t.Errorf("art %s: no %q in\n%s", args, text, stdout)
		}
	}
	return stdout
}

// wantFailure runs the command, which must fail with an error that holds the texts.
func wantFailure(t *testing.T, args string, want ...string) {
	t.Helper()
	status, _, stderr := command(strings.Fields(args)...)
	if status == 0 {
		t.Fatalf("art %s succeeds", args)
	}
	for _, text := range want {
		if !strings.Contains(stderr, text) {
			t.Errorf("art %s: no %q in %s", args, text, stderr)
		}
	}
}

func TestRuns(t *testing.T) {
	root := trainedRun(t)
	wantOutput(t, "runs", "games/player", "tiny", "VAL/REWARD", "CHECKPOINTS", " 4 of 0.")
	list := output[[]runSummary](t, "runs", "--json")
	if len(list) != 1 || list[0].Step != 3 || list[0].BestStep == nil || *list[0].BestStep != 0 || list[0].Bytes == 0 ||
		list[0].Checkpoints != 4 || list[0].StepBytes < 1000 || list[0].StepBytes > list[0].Bytes/3 {
		t.Fatalf("%+v", list)
	}
	wantOutput(t, "runs compare player games/player", "val/reward", "7 (9)", "loss/entropy")
	wantOutput(t, "runs prune player", "keeps [0 3] of 4 checkpoints; --yes deletes the others")
	wantOutput(t, "runs prune player --best val/other --yes",
		"of 4 checkpoints: --best val/other: nothing", "--best= keeps")
	wantOutput(t, "runs prune player --best reward --yes", "there are train/reward and val/reward; so any step")
	wantOutput(t, "runs prune player --best=", "keeps [3] of 4 checkpoints; --yes deletes the others")
	wantOutput(t, "runs prune player --newest 2 --yes", "keeps [0 2 3] of 4 checkpoints; ")
	entries, err := os.ReadDir(filepath.Join(root, "games", "models", "player", "checkpoints"))
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
	wantFailure(t, "runs compare player", "want two of RUN or more")
	wantFailure(t, "runs prune nobody", "art runs lists those there are")
	t.Setenv("ART_DIR", t.TempDir())
	wantOutput(t, "runs", "no runs in")
}

func TestShow(t *testing.T) {
	trainedRun(t)
	wantOutput(t, "runs show player", "games/player, split val, step 2: 8 trajectories in 2 groups, 0 failures",
		"\n4 checkpoints, the newest of 0.",
		"user      yes or no",
		"because of its length", "== group 1, trajectory 3: reward ")
	wantOutput(t, "runs show player --split train --step 0 --group 0 --limit 1", "4 trajectories in 1 group, 0 failures")
	wantOutput(t, "runs show player@1 --split train --group 1 --limit 2 --sort worst",
		"split train, step 1: 4 trajectories",
		"the first 2",
		"7+5=")
	text := wantOutput(t, "runs show player --tokens --limit 1", "assistant")
	if !strings.Contains(text, "]") || strings.Contains(text, "\x1b") {
		t.Errorf("probabilities, without colours where there is no terminal:\n%s", text)
	}
	groups := output[[]*art.TrajectoryGroup](t, "runs", "show", "player", "--json")
	if len(groups) != 2 || groups[0].Trajectories[0].Messages[2].Sample == nil {
		t.Errorf("%+v", groups)
	}
	wantFailure(t, "runs show player --split test", "the run has trajectories of train, val")
	wantFailure(t, "runs show player --group 7", "has 2 groups")
	wantFailure(t, "runs show player --step 99", "--step 99: split val has trajectories of steps")
}

// A legend has no folders, unless runs could be mistaken for each other.
func TestShortNames(t *testing.T) {
	got := shortNames([]string{"runs/games/models/one", "run:games/two@3"})
	if want := []string{"one", "two@3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	same := []string{"a/player", "b/player"}
	if got := shortNames(same); !slices.Equal(got, same) {
		t.Errorf("%q, want %q", got, same)
	}
}

func TestPlot(t *testing.T) {
	trainedRun(t)
	dir := t.TempDir()
	for name, args := range map[string]string{
		"a.svg": "runs plot player", "b.png": "runs plot run:games/player@1 player --metric loss/entropy --y nats",
		"c.svg": "runs plot --bars player@0 player --metric val/reward", "d.svg": "runs plot --batch player@0",
	} {
		file := filepath.Join(dir, name)
		wantOutput(t, args+" --out "+file, file)
		if info, err := os.Stat(file); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", args, info, err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "c.svg"))
	if err != nil || !strings.Contains(string(content), "player, step 2") ||
		!strings.Contains(string(content), "player, step 0") {
		t.Errorf("%v in %s", err, content)
	}
	content, err = os.ReadFile(filepath.Join(dir, "d.svg"))
	for _, text := range []string{"update 1, micro-batch 1: ", " trained", "padding"} {
		if err != nil || !strings.Contains(string(content), text) {
			t.Errorf("%v: no %q in %s", err, text, content)
		}
	}
	wantFailure(t, "runs plot --batch player@7", "7")
	wantFailure(t, "runs plot --batch player@0 player@1", "one RUN@STEP")
	wantFailure(t, "runs plot player --metric val/none", "nothing has logged it")
	wantFailure(t, "runs plot player --out plot.gif", ".svg or .png")
}

// TestPlot_Axis: by default what was logged is drawn, and the axis names nothing else.
func TestPlot_Axis(t *testing.T) {
	root := t.TempDir()
	r, err := runs.Open(root, "games", "only", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = errors.Join(r.WriteModel(rundir.Description{Name: "only", Project: "games", Base: "tiny"}),
		r.Commit(0, func(string) error { return nil }), r.Log("val", 0, map[string]float64{"reward": 0.5, "val/right": 1}))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "a.svg")
	wantOutput(t, "runs plot only --dir "+root+" --out "+file, file)
	content, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(content), ">val/reward<") || strings.Contains(string(content),
		"train/reward") {
		t.Errorf("%v in %s", err, content)
	}
	wantFailure(t, "runs plot only --metric right --dir "+root+" --out "+file, "nothing has logged it; there is val/right")
	wantFailure(t, "runs plot only --metric val/reward,train/reward --dir "+root+" --out "+file, "there is val/reward")
	wantFailure(t, "runs watch only --once --metric right --dir "+root, "there is val/right")
	wantFailure(t, "runs plot onyl --dir "+root, "did you mean only?")
	wantOutput(t, "runs --dir "+root, "games/only")
}

func TestAxis(t *testing.T) {
	for metrics, want := range map[string]string{
		"val/reward": "val/reward", "time/cum/train_s": "time/cum/train_s (s)",
		"val/duration,loss/policy": "val/duration (s), loss/policy", "own/thing": "own/thing",
	} {
		if got := axis(strings.Split(metrics, ",")); got != want {
			t.Errorf("%s: %s, want %s", metrics, got, want)
		}
	}
}

// scenarioFile writes a file of scenarios.
func scenarioFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenarios.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayVerb(t *testing.T) {
	trainedRun(t)
	wantOutput(t, "runs replay player@1", "step 2 is equal, bit for bit")
	wantOutput(t, "runs replay player", "step 3 is equal, bit for bit")
	if r := output[replayed](t, "runs", "replay", "run:games/player@0", "--json"); r.Step != 1 || !r.Equal ||
		r.Difference != 0 {
		t.Errorf("%+v", r)
	}
	status, _, stderr := command("runs", "replay", "player@3")
	if status != 1 || !strings.Contains(stderr, "no checkpoint of step 4") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// TestReplayVerb_Pruned: what art runs prune has deleted cannot be made again, nor what began there.
func TestReplayVerb_Pruned(t *testing.T) {
	trainedRun(t)
	wantOutput(t, "runs prune player --yes") // the best step, 0, and the newest are left
	wantFailure(t, "runs replay player@2", "no checkpoint of step 2", "it has 0, 3")
	wantFailure(t, "runs replay player", "no checkpoint of step 2", "it has 0, 3")
	wantFailure(t, "runs replay player@0", "no checkpoint of step 1", "it has 0, 3")
	wantFailure(t, "runs plot --batch player@2", "no checkpoint of step 2", "it has 0, 3")
}

// setAbout replaces a value of model.json of the trained run.
func setAbout(t *testing.T, root, key, value string) {
	t.Helper()
	path := filepath.Join(root, "games", "models", "player", "model.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var about map[string]any
	if err := json.Unmarshal(content, &about); err != nil {
		t.Fatal(err)
	}
	about[key] = value
	if content, err = json.Marshal(about); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReplay_Device: --device is the device that computes, and what is printed says where it is not that of the run.
func TestReplay_Device(t *testing.T) {
	root := trainedRun(t)
	file := filepath.Join(t.TempDir(), "batch.svg")
	for _, verb := range []string{"runs replay player@1", "runs plot --batch player@1 --out " + file} {
		wantFailure(t, verb+" --device tpu", `no device is called "tpu"`)
		_, stdout, stderr := command(strings.Fields(verb + " --device cpu")...)
		if strings.Contains(stdout+stderr, "made on") {
			t.Errorf("%s: %s%s", verb, stdout, stderr)
		}
	}
	wantFailure(t, "runs plot player --device cpu", "--device cpu: only --batch computes")
	for _, flag := range []string{"--percent", "--y text", "--metric loss/policy"} {
		wantFailure(t, "runs plot --batch player@1 "+flag, "--batch draws no curves")
	}
	made := "xla:cuda - PJRT plugin, go1.26, linux/amd64"
	setAbout(t, root, "device", made)
	wantOutput(t, "runs replay player@1", "step 2 is equal, bit for bit\nthe run was made on "+made+", and this is CPU")
	if r := output[replayed](t, "runs", "replay", "player@1", "--json"); r.Device != made ||
		!strings.HasPrefix(r.Used, "CPU") {
		t.Errorf("%+v", r)
	}
	_, _, stderr := command("runs", "plot", "--batch", "player@1", "--out", file)
	if !strings.Contains(stderr, "the run was made on "+made+", and this is CPU") {
		t.Error(stderr)
	}
}

// TestReplay_Report: a step that differs is an error, which tells another device from the same one.
func TestReplay_Report(t *testing.T) {
	const here = "CPU with AVX2, 2 workers"
	for device, want := range map[string]string{
		"CPU with AVX2, 8 workers, go1.26, linux/amd64": "made on the same kind of device, " + here,
		"xla:cuda, go1.26, linux/amd64": "made on xla:cuda, go1.26, linux/amd64, and this is " + here +
			"; take the device of the run with --device",
	} {
		err := (&replay{}).report(&local.Replayed{Step: 2, Difference: 0.25, Device: device}, here, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "by up to 0.25") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestScenario_AnswerKept: the answer stays what the file says when a reply is appended to the messages. It was the
// reply, so that art eval scored such a file with 1.
func TestScenario_AnswerKept(t *testing.T) {
	var s scenario
	line := `{"messages": [{"role": "user", "content": "1+1="}, {"role": "assistant", "content": "2"}]}`
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		t.Fatal(err)
	}
	_ = append(s.Messages, art.Assistant("3"))
	if s.wanted() != "2" {
		t.Errorf("the answer is %q, want 2", s.wanted())
	}
}

func TestEval(t *testing.T) {
	root := trainedRun(t)
	file := scenarioFile(t, `{"messages": [{"role": "user", "content": "say hello"}], "answer": "nothing like it"}`,
		`{"messages": [{"role": "user", "content": "say goodbye"}, {"role": "assistant", "content": "neither"}]}`)
	result := output[evaluation](t, "eval", "tiny", file, "--json", "--max-tokens", "4", "--context", "64")
	if result.Score != 0 || result.Scenarios != 2 || result.Failures != 0 ||
		result.Low != 0 || math.Abs(result.High-0.657620) > 1e-5 { // by Wilson's interval of 0 of 2
		t.Errorf("%+v", result)
	}
	any := scenarioFile(t, `{"messages": [{"role": "user", "content": "say hello"}], "answer": "(?s).*"}`)
	wantOutput(t, "eval player@1 "+any+" --check regex --store held_out --max-tokens 4 --tries 2 --context 64",
		"player@1  regex 1.0000  (95 %: 0.3424 to 1.0000)  1 scenario x 2")
	wantOutput(t, "runs show player --split held_out", "step 1: 2 trajectories", "reward 1")
	history, err := os.ReadFile(filepath.Join(root, "games", "models", "player", "history.jsonl"))
	if err != nil || !strings.Contains(string(history), `"held_out/reward":1`) {
		t.Errorf("%v", err)
	}
	wantFailure(t, "eval tiny "+file+" --tool-format morse", "morse", "hermes")
	wantFailure(t, "eval tiny "+file+" --check wishful", "there are calls, contains, exact")
	wantFailure(t, "eval tiny "+scenarioFile(t, `{"messages": []}`), ":1: ", "no messages")
	wantFailure(t, "eval tiny "+scenarioFile(t, `{"messages": [{"role": "user", "content": "a"}]}`), "has no answer")
}

// A judge scores each reply by itself, and is shown the answer that is wanted.
func TestEval_Judge(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(content), "the sea") || !strings.Contains(string(content), "Be kind.") {
			http.Error(w, "no answer or rubric in "+string(content), http.StatusBadRequest)
			return
		}
		id := regexp.MustCompile(`one for each of these ids: (\w+)`).FindSubmatch(content)
		reply, err := json.Marshal(fmt.Sprintf(`{"scores": [{"id": %q, "explanation": "fair", "score": 0.75}]}`, id[1]))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id": "1", "model": "j", "choices": [{"index": 0, "finish_reason": "stop",
			"message": {"role": "assistant", "content": %s}}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`, reply)
	}))
	defer server.Close()
	file := scenarioFile(t, `{"messages": [{"role": "user", "content": "what is blue?"}], "answer": "the sea"}`)
	status, stdout, stderr := command("eval", "tiny", file, "--check", "judge", "--judge", "j@"+server.URL+"/v1",
		"--rubric", "Be kind.",
		"--max-tokens", "4", "--context", "64")
	if status != 0 || !strings.Contains(stdout, "tiny  judge 0.7500") {
		t.Errorf("status %d: %s %s", status, stdout, stderr)
	}
	wantFailure(t, "eval tiny "+file+" --check judge", "belong together")
	// What is wrong with the judge is told before a model is looked for.
	wantFailure(t, "eval nosuch "+file+" --check judge --judge j", "want MODEL@URL")
	wantFailure(t, "eval nosuch "+file+" --check judge --judge j@ftp://x", "BaseURL")
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		check, reply, want string
		score              float64
	}{
		{"exact", "The Cat.", "cat", 1}, {"exact", "a dog", "cat", 0}, {"contains", "It is the cat!", "Cat", 1},
		{"f1", "cat dog", "cat", 2.0 / 3}, {"number", "so it is 1,200", "1200", 1}, {"math", `\boxed{1/2}`, "0.5", 1},
		{"json", "well: {\"a\": 1}", `{"a":1.0}`, 1}, {"json", "none", "{}", 0}, {"calls", `f({"a": 1})`, `f({"a": 1}) `, 1},
		{"regex", "abc", "^a.c$", 1}, {"regex", "abd", "^a.c$", 0},
	} {
		if got := checks[c.check](c.reply, c.want); got < c.score-1e-9 || got > c.score+1e-9 {
			t.Errorf("%s of %q for %q is %v, want %v", c.check, c.reply, c.want, got, c.score)
		}
	}
}

func TestDiff(t *testing.T) {
	trainedRun(t)
	file := scenarioFile(t, `{"messages": [{"role": "user", "content": "yes or no"}], "answer": "yes"}`)
	wantOutput(t, "runs diff player@0 tiny "+file+" --context 64", "replies that differ: 0 of 1")
	text := wantOutput(t, "runs diff --all player@0 player@3 "+file+" --context 64 --max-tokens 4", "== 0: yes or no",
		"wanted   yes", "- player@0", "+ player@3")
	if !strings.Contains(text, "replies that differ: ") {
		t.Error(text)
	}
	wantFailure(t, "runs diff player tiny", "want two of MODEL and a FILE")
}

func TestSFT(t *testing.T) {
	root := t.TempDir()
	t.Setenv("ART_DIR", root)
	var lines []string
	for i := range 6 {
		lines = append(lines,
			fmt.Sprintf(`{"messages": [{"role": "user", "content": "say %d"}, {"role": "assistant", "content": "%d"}]}`, i, i))
	}
	file := scenarioFile(t, lines...)
	args := "sft --run taught --size 4 --rate 1e-3 --context 64 " + file
	wantOutput(t, args, "step 1: 4 examples, loss ", "step 2: 2 examples, loss ", "taught is at step 2")
	wantOutput(t, args, "nothing is left to train on")
	wantOutput(t, args+" --epochs 2", "step 3: 4 examples", "taught is at step 4")
	for text, want := range map[string]string{`{"messages": 3}`: "messages is a number", "": "there are no examples"} {
		wantFailure(t, "sft --run other --context 64 "+scenarioFile(t, text), want)
	}
	if exists(filepath.Join(root, "default", "models", "other")) {
		t.Error("files that are of no use left a run behind")
	}
}

// stopAfter fails from the n-th write on.
type stopAfter struct{ writes int }

func (w *stopAfter) Write(p []byte) (int, error) {
	if w.writes--; w.writes < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestSFT_Schedule: the learning rate rises and falls over the steps of all epochs, or to --max-steps, and a run that
// was stopped and goes on ends with the bits of one that was not.
func TestSFT_Schedule(t *testing.T) {
	root := t.TempDir()
	t.Setenv("ART_DIR", root)
	var lines []string
	for i := range 5 {
		lines = append(lines,
			fmt.Sprintf(`{"messages": [{"role": "user", "content": "say %d"}, {"role": "assistant", "content": "%d"}]}`, i, i))
	}
	file := scenarioFile(t, lines...)
	sft := func(run, flags string) string {
		return "sft --run " + run + " --size 3 --batch 2 --epochs 2 --rate 1e-3 --context 64 " + file + " " + flags
	}
	adapter := func(run string, step int) []byte {
		content, err := os.ReadFile(filepath.Join(root, "default", "models", run, "checkpoints",
			fmt.Sprintf("%04d", step), "adapter_model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	const cosine = "--schedule cosine --warmup 0.25"
	wantOutput(t, sft("whole", cosine), "whole is at step 4")
	var errs bytes.Buffer
	if status := runCommand(strings.Fields(sft("stopped", cosine)), &stopAfter{1}, &errs); status == 0 {
		t.Fatal("a run whose output fails goes on")
	}
	wantOutput(t, sft("stopped", cosine), "step 3: ", "stopped is at step 4")
	if !bytes.Equal(adapter("whole", 4), adapter("stopped", 4)) {
		t.Error("the run that was stopped ends elsewhere")
	}

	wantOutput(t, sft("constant", ""), "constant is at step 4")
	wantOutput(t, sft("short", cosine+" --max-steps 2"), "short is at step 2")
	wantOutput(t, sft("short", cosine+" --max-steps 2"), "nothing is left to train on")
	whole := adapter("whole", 2)
	if bytes.Equal(whole, adapter("constant", 2)) || bytes.Equal(whole, adapter("short", 2)) {
		t.Error("the rate of a step does not depend on the schedule or its length")
	}
	wantFailure(t, sft("other", "--schedule square"), "--schedule square: want constant, linear or cosine")
	wantFailure(t, sft("other", "--warmup 2"), "warmup is 2")
}

// storedRun is model.json of a run of the project default.
func storedRun(t *testing.T, root, run string) rundir.Description {
	t.Helper()
	var d rundir.Description
	content, err := os.ReadFile(filepath.Join(root, "default", "models", run, "model.json"))
	if err == nil {
		err = json.Unmarshal(content, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSFT_Trained: the flags of what is trained reach the run, which goes on with the same ones only; and --keep
// leaves the newest weights.
func TestSFT_Trained(t *testing.T) {
	root := t.TempDir()
	t.Setenv("ART_DIR", root)
	line := `{"messages": [{"role": "user", "content": "say a"}, {"role": "assistant", "content": "a"}]}`
	file := scenarioFile(t, line, line)
	sft := func(run, flags string) string {
		return "sft --run " + run + " --size 1 --rate 1e-3 --context 64 " + file + " " + flags
	}
	flags := `--rank 3 --alpha 5 --target-pattern .*layers\.1\..*(q|down)_proj --rank-of down_proj=2` +
		` --alpha-of q_proj=7.5 --alpha-of down_proj=1 --rslora --dora`
	wantOutput(t, sft("dora", flags), "dora is at step 2")
	want := art.LoRA{Rank: 3, Alpha: 5, TargetPattern: `.*layers\.1\..*(q|down)_proj`, RankStabilized: true, DoRA: true,
		Ranks: map[string]int{"down_proj": 2}, Alphas: map[string]float64{"q_proj": 7.5, "down_proj": 1}}
	if got := storedRun(t, root, "dora").LoRA; !reflect.DeepEqual(got, want) {
		t.Errorf("the run has %+v, want %+v", got, want)
	}
	checkpoints := filepath.Join(root, "default", "models", "dora", "checkpoints")
	a, err := lora.Load(filepath.Join(checkpoints, "0002"))
	if err != nil {
		t.Fatal(err)
	}
	if layers := a.Layers(); len(layers) != 2 || len(layers[0].Magnitude) == 0 {
		t.Errorf("layers are %v", layers)
	}
	wantFailure(t, sft("dora", "--rank 3"), "LoRA.DoRA was true and is now false", "LoRA.TargetPattern was")
	wantOutput(t, sft("second", "--adapter "+filepath.Join(checkpoints, "0002")), "second is at step 2")
	wantOutput(t, sft("third", "--fork default/dora@1"), "third is at step 2")
	if got := storedRun(t, root, "third").Fork; got != "default/dora@1" {
		t.Errorf("the third is a fork of %q", got)
	}

	wantOutput(t, sft("all", "--full --keep 1"), "all is at step 2")
	if !storedRun(t, root, "all").Full {
		t.Error("not all weights are trained")
	}
	steps, err := os.ReadDir(filepath.Join(root, "default", "models", "all", "checkpoints"))
	if err != nil || len(steps) != 1 || steps[0].Name() != "0002" {
		t.Errorf("checkpoints are %v, %v", steps, err)
	}
	wantOutput(t, sft("half", "--weights bfloat16"), "half is at step 2")
	if got := storedRun(t, root, "half").Weights; got != "bfloat16" {
		t.Errorf("weights are %q", got)
	}
	wantOutput(t, sft("held", "--turns last --validation "+file), ", validation ", "held is at step 2")
	long := scenarioFile(t, line, strings.Replace(line, "say a", strings.Repeat("say a ", 100), 1))
	if status, _, stderr := command(strings.Fields(sft("short", "--validation "+long))...); status != 0 ||
		!strings.Contains(stderr, "loss/validation leaves out") {
		t.Errorf("status %d, standard error %q: want a warning", status, stderr)
	}
	for flags, want := range map[string]string{
		"--turns first":                   `unknown turns "first"`,
		"--validation " + scenarioFile(t): "has no examples",
		"--full --dora":                   "--full says what is trained: leave",
		"--fork a --rank 4":               "--fork says what is trained: leave",
		"--full --adapter x":              "--adapter and --full: each says what is trained",
		"--rank-of down_proj":             "want LAYER=NUMBER, such as down_proj=16",
		"--rank-of down_proj=x":           `"x" is not a number`,
		"--rank-of a=1 --rank-of a=2":     `"a" is given twice`,
		"--weights int8":                  `use "float32" or "bfloat16"`,
		"--activations int8":              `the device holds no quantized matrices of "tiny"`,
		"--keep -1":                       "--keep -1: want the number of steps",
		"--rank -1":                       "LoRA rank is -1",
		"--rank-of z_proj=2":              `pattern "z_proj" of ranks matches no layer`,
		"--targets z_proj":                `no layer is called "z_proj"`,
	} {
		wantFailure(t, sft("other", flags), want)
	}
}

func TestFork(t *testing.T) {
	root := trainedRun(t)
	wantOutput(t, "runs fork player@best second", filepath.Join(root, "games", "models", "second"),
		`Fork: "games/player@0"`)
	wantOutput(t, "runs", "games/second")
	wantFailure(t, "runs fork player second", "exists already")
	wantFailure(t, "runs fork player run:second", "exists already")
	wantFailure(t, "runs fork player@99 third", "no checkpoint of step 99")
	wantOutput(t, "runs fork player third", "third") // what has failed is not in the way
	b, err := local.Open(t.Context(), &local.Options{Dir: root, Progress: io.Discard, Slots: 8, Context: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m := art.NewModel("second", &art.ModelOptions{Project: "games", Fork: "games/player@0"})
	if err := m.Register(t.Context(), b); err != nil {
		t.Errorf("a program cannot go on with it: %v", err)
	}
}

// TestFork_Weights: a fork has the weights of the run in their type, which the device must have.
func TestFork_Weights(t *testing.T) {
	root := trainedRun(t)
	wantFailure(t, "runs fork player second --device tpu", `no device is called "tpu"`)
	for _, weights := range []string{"bfloat16", "float32"} {
		setAbout(t, root, "weights", weights)
		wantOutput(t, "runs fork player "+weights, weights)
		r, _, err := findRun("games/" + weights)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.About().Weights; got != weights {
			t.Errorf("a fork of a run of %s is one of %q", weights, got)
		}
	}
	setAbout(t, root, "weights", "int8")
	wantFailure(t, "runs fork player third", "does not multiply int8 matrices", "choose a device of XLA")
	wantFailure(t, "runs replay player", "does not multiply int8 matrices", "choose a device of XLA")
}

// A report has no weights, no folders of this machine and no keys.
func TestReport(t *testing.T) {
	root := trainedRun(t)
	t.Setenv("HOME", root)
	file := filepath.Join(t.TempDir(), "r.zip")
	wantOutput(t, "runs report player --trajectories --out "+file, file)
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	contents := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		contents[f.Name] = string(content)
		if strings.Contains(string(content), root) {
			t.Errorf("%s has the folder of this machine", f.Name)
		}
	}
	for _, name := range []string{"about.json", "history.jsonl", "files.txt", "reward.svg", "trajectories/val/0001.json"} {
		if contents[name] == "" {
			t.Errorf("no %s in %v", name, sortedKeys(contents))
		}
	}
	var about struct{ Run struct{ Base string } }
	if err := json.Unmarshal([]byte(contents["about.json"]), &about); err != nil || about.Run.Base != "tiny" {
		t.Errorf("%v %+v", err, about)
	}
}

func TestRedact(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USER", "somebody")
	text := newRedactor().text("sk-proj-abcdefghijklmnop1234 hf_abcdefghijklmnopqrst Bearer abc.def-ghi " + home +
		"/x somebody nobody eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4")
	if text != "[redacted] [redacted] [redacted] HOME/x USER nobody [redacted]" {
		t.Error(text)
	}
}

// A run is named in all its forms where a model is.
func TestRunNames(t *testing.T) {
	root := trainedRun(t)
	for _, name := range []string{"player", "run:player", "run:games/player", "run:games/player@3",
		filepath.Join(root, "games", "models", "player")} {
		s, err := find(name)
		if err != nil || filepath.Base(s.adapter) != "0003" || s.path != "tiny" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if s, err := find("player@best"); err != nil || filepath.Base(s.adapter) != "0000" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, name := range []string{"run:nobody", "nobody", "run:player@9", "run:a/b/c"} {
		if s, err := find(name); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
