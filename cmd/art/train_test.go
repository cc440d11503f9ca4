package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTrain_Resumes: a run is evaluated before and after, goes on behind its last step, and says when it is finished.
func TestTrain_Resumes(t *testing.T) {
	t.Setenv("ART_DIR", t.TempDir())
	args := "train words tiny --seed 1 --group 8 --steps "
	folder := filepath.Join(runsRoot(), "words", "models", "tiny")
	first := wantOutput(t, args+"2", "greedy at step 0: ", "\nstep   0  reward  0.", "\nstep   1  ",
		"\ngreedy at step 2: ", "all 2 steps are made; the run is in "+folder+"\n")
	text := wantOutput(t, args+"6", "step   2  reward", "step   5  reward", "greedy at step 6: ",
		", 1.000 at step 6: all 6")
	if strings.Contains(text, "step   1 ") || strings.Contains(text, "finished") || strings.Contains(first, "finished") {
		t.Errorf("the second time it prints %s", text)
	}
	before, _, _ := strings.Cut(first[strings.LastIndex(first, "solved "):], ",")
	text = wantOutput(t, args+"6", "the run is finished: it is at step 6;", before+", 1.000 at step 6")
	if strings.Contains(text, "greedy") {
		t.Errorf("when it is finished it prints %s", text)
	}
	wantOutput(t, args+"9 --goal 0.9", "the run is finished: it is at step 6\n",
		"1.000 at step 6: validation reached 1.000")
	wantOutput(t, "runs list", "words/tiny")
	wantFailure(t, "train words tiny --seed 2", "Seed was 1 and is now 2")
}

// TestTrain_Tasks: a step of each task.
func TestTrain_Tasks(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	t.Setenv("ART_DIR", t.TempDir())
	for name := range tasks {
		wantOutput(t, "train "+name+" tiny --steps 1 --batch 1 --group 8 --project p --run "+name, "greedy at step 1: ",
			filepath.Join(runsRoot(), "p", "models", name))
	}
}

func TestTrain_Refused(t *testing.T) {
	t.Setenv("ART_DIR", t.TempDir())
	for args, want := range map[string]string{
		"":                             "want TASK and BASE; there are the tasks arithmetic, tictactoe, words",
		"words":                        "want TASK and BASE",
		"wrods tiny":                   `no task is called "wrods", did you mean words?; there are arithmetic`,
		"words tiny --group 1":         "--group 1: want at least 2",
		"words tiny --steps -1":        "want --steps,",
		"words tiny --goal 1.5":        "want a --goal of 0 to 1",
		"words tiny --rate NaN":        "--rate of 0 or more",
		"words tiny --full --rank 4":   "--full says what is trained",
		"words tiny --every 0":         "want --steps, --batch, --every",
		"words tiny --max-tokens=-1":   "--max-tokens of at least 1",
		"words tiny --keep -1":         "--keep and --rate of 0 or more",
		"words tiny --learning-rate 1": "there is no flag --learning-rate",
	} {
		status, _, stderr := command(strings.Fields("train " + args)...)
		if status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("art train %s: status %d, %s", args, status, stderr)
		}
	}
	wantOutput(t, "runs", "no runs in")
}
