package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

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
	run   trainer.Run
	batch []grpo.Sequence
	step  int // to be made
	// checkpoint returns the folder of a verified step, for a reference of KL.
	checkpoint func(step int) (dir string, err error)
}

// train computes the state after the update, and adds to metrics. It changes nothing else.
func (u *policyUpdate) train(
	ctx context.Context, e *entry, t *trainer.Trainer, metrics map[string]float64,
) (*trainer.State, *trainer.Report, error) {
	sequences, err := credit.Normalize(u.batch, u.cfg.Credit().Normalize)
	if err != nil {
		return nil, nil, &art.Error{Op: "train", Err: err}
	}
	if sequences, err = u.addLogprobs(ctx, e, t, sequences, metrics); err != nil {
		return nil, nil, trainError(ctx, "train", err, u.cfg.LearningRate, u.cfg.MaxGradNorm)
	}
	next, report, err := t.Train(ctx, e.state, sequences, u.run)
	if err != nil {
		return nil, nil, trainError(ctx, "train", err, u.cfg.LearningRate, u.cfg.MaxGradNorm)
	}
	maps.Copy(metrics, reportMetrics(*report))
	maps.Copy(metrics, trainset.PolicyAge(u.batch))
	metrics["loss/learning_rate"] = u.cfg.LearningRate
	return next, report, nil
}

// addLogprobs returns normalised sequences with the logprobs that cfg needs besides those of the sampler: of the policy
// before its update, and of a reference. metrics gets what is measured.
func (u *policyUpdate) addLogprobs(
	ctx context.Context, e *entry, t *trainer.Trainer, seqs []grpo.Sequence, metrics map[string]float64,
) ([]grpo.Sequence, error) {
	seqs, cfg := slices.Clone(seqs), u.cfg
	if cfg.PrecalculateLogprobs {
		lists, err := t.Logprobs(ctx, e.state, seqs, cfg.MicroBatch)
		if err != nil {
			return nil, err
		}
		for i := range seqs {
			seqs[i].Old = lists[i]
		}
	}
	if !cfg.KL.Advantage && !u.run.Loss.Spec().Reference {
		return seqs, nil
	}
	reference, err := u.reference(e, t)
	if err != nil {
		return nil, err
	}
	lists, err := t.Logprobs(ctx, reference, seqs, cfg.MicroBatch)
	if err != nil {
		return nil, err
	}
	for i := range seqs {
		seqs[i].Reference = lists[i]
	}
	if !cfg.KL.Advantage {
		return seqs, nil
	}
	metrics["loss/kl_ref"], err = shapeByKL(seqs, cfg.KL)
	return seqs, err
}

// shapeByKL shapes the advantages of sequences in place, see [credit.ShapeByKL]. It leaves out those with logprobs that
// are not finite, whose update the trainer skips.
func shapeByKL(seqs []grpo.Sequence, kl credit.KL) (mean float64, err error) {
	var whole []grpo.Sequence
	var from []int
	for i := range seqs {
		if seqs[i].Validate() == nil {
			whole, from = append(whole, seqs[i]), append(from, i)
		}
	}
	shaped, mean, err := credit.ShapeByKL(whole, kl.Coef, kl.Estimator)
	for i := range shaped {
		seqs[from[i]] = shaped[i]
	}
	return mean, err
}

// reference returns the parameters that a penalty keeps close to, or that a loss compares with.
func (u *policyUpdate) reference(e *entry, t *trainer.Trainer) (*trainer.State, error) {
	k := u.cfg.KL
	step := max(u.step-1-k.Lag, 0)
	switch {
	case k.Step != nil:
		step = *k.Step
	case k.Lag == 0:
		return e.policy.baseState(t, e.base, e.state)
	}
	dir, err := u.checkpoint(step)
	if err != nil {
		return nil, err
	}
	_, state, err := readCheckpoint(dir, e.base)
	if err != nil {
		return nil, checkpointError("train", dir, err)
	}
	if !slices.EqualFunc(state.Shapes, e.state.Shapes, slices.Equal[[]int]) {
		return nil, invalid("train", "take another step", "the reference of KL is step %d, whose adapter has other shapes",
			step)
	}
	return state, nil
}
