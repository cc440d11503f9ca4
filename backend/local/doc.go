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
// model/hub). Afterwards only the cache is used: a branch that moves on the hub changes nothing until `art pull`
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
// # Metrics of Train
//
//	data/groups, data/groups_trainable     groups given, and those that were trained on
//	data/trajectories_trained              trajectories trained on
//	data/skipped_<reason>                  groups or trajectories skipped: see art.SkipReason
//	data/tokens_trained                    tokens in the loss, sampled ones or targets, in one epoch
//	data/tokens_computed                   tokens that the trainer computed gradients of, padding and epochs included
//	loss/policy, loss/entropy, loss/kl_old_new, ratio/clipped_frac, ratio/logprob_diff_mean
//	                                       means over the updates of the step: see grpo.PolicyLoss
//	ratio/logprob_diff_max                 the largest over the updates
//	train/logprob_gap_max, train/logprob_gap_mean
//	                                       disagreement of trainer and sampler: |difference| of a token's logprob,
//	                                       nats, before any update, over all trained tokens that the step being trained
//	                                       sampled; absent when there are none
//	offpolicy/logprob_diff_max, offpolicy/logprob_diff_mean
//	                                       the same over tokens that another step sampled: how far the policy has moved
//	                                       since, including the disagreement; absent when there are none
//	offpolicy/token_weighted_policy_age_steps, offpolicy/policy_age_max_steps
//	                                       staleness: steps from the one that sampled a trained token to the one being
//	                                       trained, mean and maximum; negative for samples of a later step
//	train/logprob_change_max, train/logprob_change_mean
//	                                       |after - before| the step of a token's logprob, nats, over one sequence in 32
//	                                       of the batch, 1 to 4; a maximum up to 0.002 is logged as a warning: the step
//	                                       changed almost nothing
//	train/grad_norm                        mean global norm of the gradient, before clipping
//	train/updates, train/updates_skipped   optimizer steps made, and those skipped for a gradient that is not finite
//	train/learning_rate                    of the configuration; with a warm-up or a decay, the highest
//	time/train_s                           seconds of the training call
//
// With one mini-batch the gap is a by-product of the gradient. With more, those after the first need a forward pass
// before the first update, once for all epochs: after an update their logprobs are those of another policy.
//
// TrainSFT has loss/sft, the mean -logprob of the trained tokens in nats, instead of the other losses, and no metrics
// of groups, ratio, offpolicy and gap; its row has no rewards. It skips single histories, and data/skipped_<reason>
// counts them. A step of Train with nothing to train on has no metrics of loss, ratio, offpolicy and train, and no
// data/tokens_computed.
//
// A step after which the model computes numbers that are not finite, or equal logits for all tokens, is an error and
// not committed: see LearningRate.
package local
