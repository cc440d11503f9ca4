// Package reward has the parts that reward functions are made of: answers compared as text, numbers, mathematics or
// JSON, penalties for length and format, and a user played by a model.
//
//	answer, _ := reward.FinalAnswer(reply.Content)
//	reward.Combine(t,
//		reward.Part{Name: "right", Weight: 1, Score: reward.Math(answer, task.Answer)},
//		reward.Part{Name: "format", Weight: 0.1, Score: reward.Tags(reply.Content, "think", "answer")},
//		reward.Part{Name: "overlong", Weight: 1, Score: reward.SoftOverlong(reward.SampledTokens(t), 1024, 256)},
//	)
//
// Scores are from 0 to 1, penalties from -1 to 0. The functions that compute them depend on their arguments only,
// take any text, since it is a model that wrote it, never panic, and end in bounded time: what is too large to be
// compared as mathematics is compared as text. What cannot be read scores 0, and so does an empty answer. A reference
// that cannot be read scores 0 as well, for every answer: look at the share of groups without variance.
//
// JSON by schema is in package schema, which needs a library. How rewards are hacked is in docs/rewards.md.
package reward
