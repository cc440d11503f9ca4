// Package local is the default backend of art: it samples and trains in the process that imports it, in pure Go.
//
// [Open] gives a [Backend]. Each base model has one engine, which answers the requests of all models on that base, each
// with its newest adapter. A training call computes the next adapter from the stored samples, writes the run directory,
// and swaps it in; requests that arrive meanwhile are answered by the step before.
//
// # Base models
//
// "tiny" is the built-in model (package model/tiny). Any other name is a folder with config.json, model.safetensors (or
// shards), tokenizer.json and tokenizer_config.json, as Hugging Face has them; or, when there is no such folder, ORG/NAME
// or ORG/NAME@revision of a model on the hub. That is fetched once, into the cache shared with Python (package
// model/hub). Afterwards the cache decides: a branch that moves on the hub changes nothing before `art pull` fetches it.
// A run remembers the commit that it was made with.
//
// # Run directory
//
// Package internal/runs describes the files. A step is atomic: a kill at any moment leaves the step before or the new
// one, and the same program, run again, continues to the same result.
//
// # Metrics of Train
//
//	data/groups, data/groups_trainable     groups given, and those with something to learn from
//	data/trajectories_trained              trajectories trained on
//	data/skipped_<reason>                  groups or trajectories left out: see art.SkipReason
//	data/tokens_trained                    tokens in the loss, sampled ones or targets, one epoch
//	data/tokens_computed                   tokens that the trainer computed, padding and epochs included
//	loss/policy, loss/entropy, loss/kl_old_new, ratio/clipped_frac
//	                                       means over the updates of the step: see grpo.LossSums.Metrics
//	train/logprob_gap_max, train/logprob_gap_mean
//	                                       |trainer - sampler| of a token's logprob, nats, at the first update
//	train/grad_norm                        mean global norm of the gradient, before clipping
//	train/updates, train/updates_skipped   optimizer steps made, and those left out for a gradient that is not finite
//	train/learning_rate                    of the configuration; where it has a warm-up or a decay, the highest
//	time/train_s                           seconds that it took
//
// TrainSFT has loss/sft, the mean -logprob of the learned tokens in nats, in place of the other losses, and neither groups, ratio
// nor gap. It leaves out single histories, and data/skipped_<reason> counts them. A step of Train that had nothing to learn from has neither loss, ratio and train, nor data/tokens_computed.
package local
