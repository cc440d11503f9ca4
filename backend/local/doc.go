// Package local is the default backend of art: it samples and trains in the process that imports it, in pure Go.
//
// [Open] returns a [Backend]. Each base model has one engine, which serves the requests of all models on that base,
// each with its newest adapter. A training call computes the next adapter from the stored samples, commits it to the
// run directory, and swaps it in; requests that arrive meanwhile are answered by the previous step.
//
// # Base models
//
// "tiny" is the built-in model (package model/tiny). Any other name is a folder with config.json, model.safetensors (or
// shards), tokenizer.json and tokenizer_config.json in the format of Hugging Face; or, when there is no such folder,
// ORG/NAME or ORG/NAME@revision of a model on the hub. It is fetched once, into the cache shared with Python (package
// model/hub). Afterwards only the cache is used: a branch that moves on the hub changes nothing until `art model pull`
// fetches it. A run records the commit of its base model.
//
// # Run directory
//
// Package internal/runs describes the files. A step is atomic: a kill at any moment leaves the previous step or the new
// one, and the same program, run again, continues to the same result. Other damage is logged as a warning when the
// model is registered: damaged older checkpoints, a truncated or edited history, missing trajectories. It is an error
// where continuing would lose or mix data: the newest checkpoint is damaged, model.json is missing, or the folder has
// another version of the layout. A run whose folder is deleted or replaced while it is open can no longer be changed.
//
// The update from step k to k+1 has one row of history, of split "train" and step k: the rewards of policy k, and the
// metrics below. It is committed with checkpoint k+1, and so are the trajectories of the update. Log adds to it.
//
// # Metrics
//
// [Metrics] describes those of a training, and docs/metrics.md lists them. What adds up has its sum over the steps of
// the run too: data/cum/groups.
//
// With one mini-batch the gap is a by-product of the gradient. With more, those after the first need a forward pass
// before the first update, once for all epochs: after an update their logprobs are those of another policy.
//
// TrainSFT has loss/sft instead of the other losses, and no metrics of groups, offpolicy and gap; its row has no
// rewards. It skips single histories, and data/skipped_<reason> counts them. TrainDPO has loss/dpo in the same way, and
// measures pairs after the step: train/reward_margin and those beside it. A step of Train with nothing to train on
// has no metrics of loss, offpolicy and train, and no data/tokens_computed.
//
// An update whose loss or gradient is NaN or infinite is skipped as a whole: data/updates_skipped counts it, a warning
// is logged, and the trajectories are listed with credit.ReasonNotFinite. Metrics of the loss are of the other
// updates. When there are none, they, loss/grad_norm and train/logprob_change are absent, and the step has unchanged
// weights.
//
// A step after which the model computes numbers that are not finite, or equal logits for all tokens, is an error and
// not committed: see LearningRate.
package local
