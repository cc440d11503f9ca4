package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

// updateRecord is the file runs.UpdateFile of a checkpoint: how its step was made, for [Backend.Replay].
type updateRecord struct {
	Train *art.TrainConfig `json:"train,omitempty"` // one of the three, with its defaults
	SFT   *art.SFTConfig   `json:"sft,omitempty"`
	DPO   *art.DPOConfig   `json:"dpo,omitempty"`
	// Groups is the number of stored groups that were trained on; what follows them was logged.
	Groups     int    `json:"groups"`
	Context    int    `json:"context"`               // longest sequence
	ToolFormat string `json:"tool_format,omitempty"` // of the chat template
	// MicroTokens are those of the micro-batches, see Options. Without a training it is 0.
	MicroTokens int `json:"micro_tokens,omitempty"`
	// Narrow bounds micro-batches with shared tokens by MicroTokens alone, see [plan.Sizes].
	Narrow bool `json:"narrow,omitempty"`
}

// write writes the record into the folder of a checkpoint.
func (r *updateRecord) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, runs.UpdateFile), append(data, '\n'), 0o644)
}

// readUpdate reads the record of a checkpoint. Fields of a newer version are an error.
func readUpdate(dir string) (*updateRecord, error) {
	data, err := os.ReadFile(filepath.Join(dir, runs.UpdateFile))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	r := &updateRecord{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", runs.UpdateFile, err)
	}
	kinds := 0
	for _, there := range []bool{r.Train != nil, r.SFT != nil, r.DPO != nil} {
		if there {
			kinds++
		}
	}
	if kinds != 1 || r.Groups < 0 || r.Context < 1 {
		return nil, fmt.Errorf("%s: want one of train, sft and dpo, groups and context", runs.UpdateFile)
	}
	return r, nil
}

// policyUpdate is one training on groups.
type policyUpdate struct {
	cfg   *art.TrainConfig // with its defaults
	loss  grpo.Loss
	batch *trainset.Set
	seed  uint64 // of the run
	step  int    // to be made
	// checkpoint returns the folder of a verified step, for a reference of KL.
	checkpoint func(step int) (dir string, err error)
	progress   func(total int, soFar trainer.Report)
}

// run computes the state after the update, and adds to metrics. It changes nothing else.
func (u *policyUpdate) run(
	ctx context.Context, e *entry, t *trainer.Trainer, metrics map[string]float64,
) (*trainer.State, *trainer.Report, error) {
	sequences, err := credit.Normalize(u.batch.Sequences, u.cfg.Credit().Normalize)
	if err != nil {
		return nil, nil, &art.Error{Op: "train", Err: err}
	}
	diverged := learningOptions{u.cfg.LearningRate, u.cfg.MaxGradNorm}
	if sequences, err = u.addLogprobs(ctx, e, t, sequences, metrics); err != nil {
		return nil, nil, trainError(ctx, "train", err, diverged)
	}
	run := policyRun(u.cfg, u.loss, trainset.Seed(u.seed, u.step))
	run.Progress = u.progress
	next, report, err := t.Train(ctx, e.state, sequences, run)
	if err != nil {
		return nil, nil, trainError(ctx, "train", err, diverged)
	}
	maps.Copy(metrics, reportMetrics(*report))
	maps.Copy(metrics, trainset.PolicyAge(u.batch.Sequences))
	metrics["loss/learning_rate"] = u.cfg.LearningRate
	return next, report, nil
}
