// Package local is the default backend of art: it samples and trains in the process that imports it, in pure Go.
//
// [Open] gives a [Backend]. Each base model has one engine, which answers the requests of all models on that base, each
// with its newest adapter. A training call computes the next adapter from the stored samples, writes the run directory,
// and swaps it in; requests that arrive meanwhile are answered by the step before.
//
// # Base models
//
// "tiny" is the built-in model (package model/tiny). Any other name is a folder with config.json, model.safetensors (or
// shards), tokenizer.json and tokenizer_config.json, as Hugging Face has them; or, when there is no such folder,
// ORG/NAME or ORG/NAME@revision of a model on the hub. That is fetched once, into the cache shared with Python (package
// model/hub). Afterwards the cache decides: a branch that moves on the hub changes nothing before `art pull` fetches
// it. A run remembers the commit that it was made with.
//
// # Run directory
//
// Package internal/runs describes the files. A step is atomic: a kill at any moment leaves the step before or the new
// one, and the same program, run again, continues to the same result. What was lost otherwise, by hand or by a disk, is
// told to Options.Logger as a warning when the model is registered: older checkpoints that are damaged, a history that
// was cut or edited, trajectories that are missing. It is an error where going on would lose or mix something: the
// newest checkpoint is damaged, model.json is missing, or the folder is of another version of the layout. A run whose
// folder is deleted or replaced while it is open cannot be changed any more.
//
// The update from step k to k+1 has one row of history, of split "train" and step k: what policy k earned, and the
// metrics below. It is committed with checkpoint k+1, and so are the trajectories of the update. Log adds to it.
//
// # Metrics of Train
//
//	data/groups, data/groups_trainable     groups given, and those with something to learn from
//	data/trajectories_trained              trajectories trained on
//	data/skipped_<reason>                  groups or trajectories left out: see art.SkipReason
//	data/tokens_trained                    tokens in the loss, sampled ones or targets, one epoch
//	data/tokens_computed                   tokens that the trainer computed gradients of, padding and epochs included
//	loss/policy, loss/entropy, loss/kl_old_new, ratio/clipped_frac, ratio/logprob_diff_mean
//	                                       means over the updates of the step: see grpo.PolicyLoss
//	ratio/logprob_diff_max                 the largest over the updates
//	train/logprob_gap_max, train/logprob_gap_mean
//	                                       disagreement of the two engines: |trainer - sampler| of a token's logprob,
//	                                       nats, before any update, over all trained tokens that the step being trained
//	                                       sampled; absent when there are none
//	offpolicy/logprob_diff_max, offpolicy/logprob_diff_mean
//	                                       the same over tokens that another step sampled: how far the policy has moved
//	                                       since, disagreement included; absent when there are none
//	offpolicy/token_weighted_policy_age_steps, offpolicy/policy_age_max_steps
//	                                       staleness: steps from the one that sampled a trained token to the one being
//	                                       trained, mean and maximum; negative for samples of a later step
//	train/logprob_change_max, train/logprob_change_mean
//	                                       |after - before| the step of a token's logprob, nats, over one sequence in 32
//	                                       of the batch, 1 to 4; a maximum up to 0.002 is a warning to Logger: the step
//	                                       moved next to nothing
//	train/grad_norm                        mean global norm of the gradient, before clipping
//	train/updates, train/updates_skipped   optimizer steps made, and those left out for a gradient that is not finite
//	train/learning_rate                    of the configuration; where it has a warm-up or a decay, the highest
//	time/train_s                           seconds that it took
//
// With one mini-batch the gap is a by-product of the gradient. With more, those after the first cost a forward pass
// before the first update, once for all epochs: after an update their logprobs are those of another policy.
//
// TrainSFT has loss/sft, the mean -logprob of the learned tokens in nats, in place of the other losses, and neither
// groups, ratio, offpolicy nor gap, and its row has no rewards. It leaves out single histories, and
// data/skipped_<reason> counts them. A step of Train that had nothing to learn from has neither loss, ratio, offpolicy
// and train, nor data/tokens_computed.
//
// A step after which the model computes no numbers, or equal logits for all tokens, is an error and not committed: see
// LearningRate.
package local
