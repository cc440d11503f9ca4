// Package art trains LLM agents by reinforcement learning, inside the process that runs them.
//
// A program runs its own agent many times, says how good each run was, and calls [Model.Train]. The model that answers
// the next request is the improved one. There is no second server and no second language: package backend/local samples
// and trains in this process, on the CPU, or on a GPU when the program imports its device.
//
//	model := art.NewModel("player-1", &art.ModelOptions{Project: "games"})
//	err := model.Register(ctx, backend)
//	for step := model.Step(); step < 50; step++ {
//		groups, err := art.GatherGroups(ctx, scenarios(step), play, &art.GatherOptions{GroupSize: 8, Seed: uint64(step)})
//		result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-4})
//		err = model.Log(ctx, "train", groups, result.Metrics)
//	}
//
// where play plays one game by [Model.Chat] and sets [Trajectory].Reward. [Model.Step] is the stored step of a run that
// exists: the loop resumes by itself.
//
// # Words
//
// Each has one meaning, in names, logs and files.
//
//   - A trajectory is one run of an agent: its messages, and how good it was.
//   - A history is one conversation. A trajectory has one, and more when the agent forks or rewrites its context.
//   - A group is a set of trajectories of the same scenario. They are compared with one another and with nothing else.
//   - A scenario is a task that is given to the agent. An attempt is one of the rollouts of a scenario; a retry is an
//     attempt again after a failure.
//   - A sample is what the model did to write one message: the exact context, the sampled tokens, their logprobs. It is
//     stored, and never made again from text.
//   - A logprob is the natural logarithm of the probability of a token.
//   - A reward is a number for a trajectory, higher for better. Only its differences within the group matter.
//   - An advantage is what becomes of a reward in its group: by default (reward - mean) / standard deviation. Tokens of a
//     positive one become more likely.
//   - An adapter is what is trained: low-rank additions (LoRA) to the layers of a base model, which stays as it is.
//   - A step, or policy step, is one version of the adapter. Step 0 is the base model; each training makes the next.
//     What policy k earned, and the update from k to k+1, are of step k.
//   - A run is a model's name in a project, with all that is stored of it.
//
// # From request to gradient
//
//	scenario -> rollout -> trajectory -> group -> advantage -> loss -> adapter -> step
//	            Chat        reward       Gather    package grpo        package lora
//
// A rollout is a plain function. It talks to the model by [Model.Chat], or by any OpenAI client that is given
// [Model.HTTPClient], in which case [Record] collects the trajectory. Replies come with their [Sample]: the message text is
// for the agent, the sample for training.
//
// [GatherGroups] runs rollouts with bounded concurrency and gives the same result whatever the order in which they end: a
// rollout that fails is a [Failure] of its group, within a budget. [Gather] does the same for an evaluation, and [Batches]
// deals scenarios out to steps.
//
// [Model.Train] hands groups to the [Backend], which makes advantages, computes the loss on the stored tokens, updates the
// adapter, and commits, with the rewards and metrics of the groups. Requests meanwhile are answered by the step before.
// [Model.Log] stores what else there is to know, and evaluations.
//
// # Determinism
//
// Each completion has its own seed, derived from the run's seed, the step, and the place of the call: seed of the gather,
// group, attempt, retry, number of the call. [Rand] and [GroupRand] give environments randomness from the same place. On a
// backend whose numbers do not depend on what else is running, as the local one on the CPU, a run is a function of its
// seed.
//
// # Packages
//
// This one has the vocabulary, gathering and recording, and depends on the standard library only, so that an agent that
// only records, or calls a remote backend, stays small.
//
//   - backend/local is the default [Backend]: engine, trainer and run directory in this process.
//   - backend/backendtest has the tests that every backend passes.
//   - tokenizer renders conversations to tokens and parses replies.
//   - grpo has advantages, losses and batches; lora the adapter; model the transformer.
//
// A backend of one's own implements [Backend], and any of [Logger], [CheckpointKeeper], [SFTTrainer] and [HTTPServer].
//
// # Errors
//
// Errors are of type *[Error], say what to do, and wrap one of the Err variables, for [errors.Is]. Arguments are checked
// before anything happens, and one [ErrInvalid] lists everything that is wrong with them.
//
// # Caveats
//
//   - Rewards that are all equal teach nothing: a group without differences is skipped, and [TrainResult].Skipped says so.
//     When that becomes the rule, scenarios are too easy or too hard.
//   - Calls that one rollout makes concurrently are numbered as they come, so their seeds depend on timing. Such a rollout
//     sets [ChatOptions].Seed.
//   - A rollout that ignores its context is left behind after its timeout. Its goroutine stays until it returns.
//   - Text is valid UTF-8; what is not becomes U+FFFD when it is stored. Tokens are stored as they were.
package art
