// Package art trains LLM agents by reinforcement learning, inside the process that runs them.
//
// A program runs its own agent many times, scores each run, and calls [Model.Train]. The model that answers the next
// request is the improved one. There is no second server and no second language: package backend/local samples and
// trains in this process, on the CPU, or on a GPU when the program imports its device.
//
//	model := art.NewModel("player-1", &art.ModelOptions{Project: "games"})
//	err := model.Register(ctx, backend)
//	for step := model.Step(); step < 50; step++ {
//		groups, err := art.GatherGroups(ctx, scenarios(step), play, &art.GatherOptions{GroupSize: 8, Seed: uint64(step)})
//		result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-4})
//		err = model.Log(ctx, "train", groups, result.Metrics)
//	}
//
// where play plays one game with [Model.Chat] and sets [Trajectory].Reward. For an existing run, [Model.Step] is the
// stored step, so the loop resumes where it stopped.
//
// # Words
//
// Each has one meaning, in names, logs and files.
//
//   - A trajectory is one run of an agent: its messages, and how good it was.
//   - A history is one conversation. A trajectory has one, and more when the agent forks or rewrites its context.
//   - A group is a set of trajectories of the same scenario. They are compared with one another and with nothing else.
//   - A scenario is a task for the agent. An attempt is one of the rollouts of a scenario; a retry repeats an attempt
//     that failed.
//   - A sample is what the model did to write one message: the exact context, the sampled tokens, their logprobs. It is
//     stored, and never rebuilt from text.
//   - A logprob is the natural logarithm of the probability of a token.
//   - A reward is a number for a trajectory, higher for better. Only its differences within the group matter.
//   - An advantage is a reward relative to its group: by default (reward - mean) / standard deviation. Tokens with a
//     positive advantage become more likely.
//   - An adapter holds the trained weights: low-rank additions (LoRA) to the layers of a frozen base model.
//   - A step, or policy step, is one version of the adapter. Step 0 is the base model; each training makes the next.
//     The rewards that policy k earned, and the update from k to k+1, belong to step k.
//   - A run is a model's name in a project, with everything that is stored under it.
//
// # From request to gradient
//
//	scenario -> rollout -> trajectory -> group -> advantage -> loss -> adapter -> step
//	            Chat        reward       Gather    package grpo        package lora
//
// A rollout is a plain function. It calls the model with [Model.Chat], or with any OpenAI client that uses
// [Model.HTTPClient], in which case [Record] collects the trajectory. Replies come with their [Sample]: the message
// text is for the agent, the sample for training.
//
// [GatherGroups] runs rollouts with bounded concurrency. Its result does not depend on the order in which they end, and
// a rollout that fails becomes a [Failure] of its group, within a budget. [Gather] does the same for an evaluation, and
// [Batches] splits scenarios into batches, one for each step. [Pipeline] runs rollouts and trainings at the same time.
//
// [Model.Train] hands groups to the [Backend], which computes advantages and the loss on the stored tokens, updates the
// adapter, and commits it with the rewards and metrics of the groups. Meanwhile requests are answered by the previous
// step. [Model.Log] stores further metrics, and evaluations.
//
// # Determinism
//
// Each completion has its own seed, derived from the run's seed, the step, and the position of the call: seed of the
// gather, group, attempt, retry, number of the call. [Rand] and [GroupRand] derive the randomness of environments from
// the same position. On a backend whose results do not depend on what else is running, such as the local one on the
// CPU, a run is a function of its seed.
//
// # Packages
//
// This package has the domain types, gathering and recording. It depends on the standard library only, so that an agent
// that only records, or calls a remote backend, stays small.
//
//   - backend/local is the default [Backend]: engine, trainer and run directory in this process.
//   - backend/backendtest has the tests that every backend must pass.
//   - tokenizer renders conversations to tokens and parses replies.
//   - grpo has advantages, losses and batches; lora the adapter; model the transformer.
//
// A custom backend implements [Backend], and any of driver.Logger, driver.CheckpointKeeper, driver.SFTTrainer,
// driver.DPOTrainer, loop.Trainer and driver.HTTPServer.
//
// # Errors
//
// Errors are of type *[Error], say what to do, and wrap one of the Err variables, for [errors.Is]. Arguments are
// checked before anything happens, and one [ErrInvalid] lists everything that is wrong with them.
//
// # Caveats
//
//   - Equal rewards carry no signal: a group whose rewards are all equal is skipped, and [TrainResult].Skipped lists
//     it. If most groups are skipped, the scenarios are too easy or too hard.
//   - Concurrent calls of one rollout are numbered in the order in which they arrive, so their seeds depend on timing.
//     Such a rollout should set [ChatOptions].Seed.
//   - A rollout that ignores its context is abandoned after its timeout. Its goroutine stays until it returns.
//   - Text is stored as UTF-8: invalid bytes become U+FFFD. Token ids are stored unchanged.
package art
