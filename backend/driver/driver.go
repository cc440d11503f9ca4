// Package driver has the interfaces that authors of backends implement beside [art.Backend], each for what only some
// backends can do, in the manner of database/sql/driver. A Model uses those that its backend has; where one lacks what
// is asked for, the error is an [art.ErrUnsupported]. backend/loop has those of training loops of one's own.
package driver

import (
	"context"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// HTTPServer is a [art.Backend] with an OpenAI-compatible HTTP API.
type HTTPServer interface {
	// Handler serves /v1/chat/completions, /v1/models, and what else the backend has, for the registered models, to other
	// processes. opts say which clients it answers, and may be nil; invalid options are an [art.ErrInvalid].
	Handler(opts *art.HandlerOptions) (http.Handler, error)
	// Transport answers the same requests in process, without a socket, for model m. It serves a request with the
	// seed and the recorder of the request's context.
	Transport(m *art.Model) http.RoundTripper
}

// Pinner is a [art.Backend] that can go on answering with a step when the next ones are made.
type Pinner interface {
	// Pin returns the step of m that is the newest now, and what makes a context with which it answers.
	Pin(m *art.Model) (pinned func(ctx context.Context) context.Context, step int, err error)
}

// StepPinner is a [Pinner] that can answer with any stored step of a model.
type StepPinner interface {
	// PinStep returns what makes a context with which a stored step of m answers. It is an [art.ErrInvalid] if the step
	// has no checkpoint.
	PinStep(ctx context.Context, m *art.Model, step int) (pinned func(ctx context.Context) context.Context, err error)
}

// Streamer is a [art.Backend] that delivers a reply while it is sampled.
type Streamer interface {
	// Stream answers like [art.Backend.Complete]. While the reply is sampled it calls piece with what has been added since
	// the call before: one call at a time, none after Stream has returned. All pieces together are the reply: texts and
	// token ids joined, they are those of the response's message. What may still become something else, such as half a
	// character or the beginning of a stop string or of a tool call, is held back.
	//
	// An error of piece ends the reply and is returned. So does the end of ctx, which frees the request's memory at once.
	// piece may block, on a client that reads slowly; other requests must go on meanwhile.
	Stream(ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error) (*art.ChatResponse, error)
}

// Tokenizer is a [art.Backend] that shows the token ids of a model.
type Tokenizer interface {
	// Tokenize returns the ids of the prompt that [art.Backend.Complete] renders from req, and the ids of reply after it,
	// with the end-of-turn token. A nil reply has none. req.Settings is ignored.
	Tokenize(ctx context.Context, m *art.Model, req *art.ChatRequest, reply *art.Message) (prompt, ids []int32, err error)
	// Encode returns the ids of a text as it is, without a chat template. Special tokens that are written in it are
	// recognised. special adds those that the tokenizer puts around a text, such as the beginning-of-sequence token.
	Encode(ctx context.Context, m *art.Model, text string, special bool) ([]int32, error)
	// Decode returns the text of ids, special tokens included. Bytes that are not UTF-8 become U+FFFD. An id that the
	// vocabulary lacks is an [art.ErrInvalid].
	Decode(ctx context.Context, m *art.Model, ids []int32) (string, error)
	// TokenBytes returns the bytes that each of ids adds to a text. They may be a part of a character. An id that the
	// vocabulary lacks is an [art.ErrInvalid].
	TokenBytes(ctx context.Context, m *art.Model, ids []int32) ([][]byte, error)
}

// Sampler is a [art.Backend] that computes with token ids.
type Sampler interface {
	// Logprobs returns the logprob of each of ids but the first, given those before it, under the newest step of m at
	// temperature 1; and that step. For ids that this step sampled they equal [art.Sample].Logprobs, up to rounding.
	Logprobs(ctx context.Context, m *art.Model, ids []int32) (logprobs []float32, step int, err error)
	// Sample continues prompt, at least one id, with the newest step of m. Every field of s is set. The reply ends where
	// one of [art.Backend.Complete] would end: with the same prompt ids and settings both sample the same,
	// except that with a ResponseFormat there is no reasoning before the text here.
	//
	// The response's message has the text of the reply without special tokens; nothing in it is parsed as reasoning or
	// tool calls. Its Sample is set for frozen models too. piece is called as [Streamer] says, and may be nil; a backend
	// that is no Streamer calls it once, with the whole reply.
	Sample(
		ctx context.Context, m *art.Model, prompt []int32, s art.Sampling, piece func(art.Piece) error,
	) (*art.ChatResponse, error)
}

// Logger is a [art.Backend] that stores trajectories and metrics. Its trainings store, with the step k+1 that they
// make, the row of split "train" and step k: what [art.Metrics] computes of the groups, and the metrics of the result.
type Logger interface {
	// Log stores groups and metrics under (split, step). A second call for the same pair merges metrics by key; groups
	// replace those before, unless a training stored them.
	Log(
		ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
	) error
}

// CheckpointKeeper is a [art.Backend] that stores a checkpoint for each step.
type CheckpointKeeper interface {
	// Checkpoints returns the stored steps in ascending order.
	Checkpoints(ctx context.Context, m *art.Model) ([]int, error)
	// History returns what was logged, in the order of the log. It does so after Close too: trackers are often closed
	// last, and ask for what they have missed.
	History(ctx context.Context, m *art.Model) ([]art.HistoryRow, error)
	// DeleteCheckpoints deletes all checkpoints but those of the steps to keep.
	DeleteCheckpoints(ctx context.Context, m *art.Model, keep []int) error
}

// CheckpointRestorer is a [art.Backend] that can go back to a stored step.
type CheckpointRestorer interface {
	// Restore makes the next step of m, k+1 after k, a copy of a stored one: weights and optimizer.
	Restore(ctx context.Context, m *art.Model, step int) (next int, err error)
}

// StateKeeper is a [art.Backend] that stores user state with a run.
type StateKeeper interface {
	// SaveState merges patch into the state of m and stores it, see [art.Model.SaveState].
	SaveState(ctx context.Context, m *art.Model, patch any) error
	// LoadState reads the state of m into v, a pointer. It returns false when there is none.
	LoadState(ctx context.Context, m *art.Model, v any) (found bool, err error)
}

// BaseChooser is a [art.Backend] with a base model for models that name none.
type BaseChooser interface {
	// DefaultBase returns the base of m where [art.ModelOptions].Base is empty. [art.Model.Register] puts it there.
	DefaultBase(m *art.Model) string
}

// LossProvider is a Backend that trains with losses beside the built-in ones.
type LossProvider interface {
	// Losses lists the names that [art.TrainConfig].Loss may have besides those of [credit.Losses].
	Losses() []credit.Loss
}

// GroupChecker is a [art.Backend] that says before a training which groups it would skip. [art.Pipeline] asks it;
// without it groups with equal rewards, and of fewer than two trajectories, are those of which nothing can be learned.
type GroupChecker interface {
	// CheckGroup says why a group has no advantages under a configuration with its defaults: it is "" where Train would
	// compute some, and otherwise the reason that [art.TrainResult].Skipped would have for the group.
	CheckGroup(g *art.TrajectoryGroup, cfg *art.TrainConfig) credit.Reason
}

// TrainChecker is a [art.Backend] that says before the rollouts what its Train refuses. [art.Pipeline] asks it when it
// begins, and [art.Model.Train] each time.
type TrainChecker interface {
	// CheckTrain returns the error of Train for a configuration with its defaults: [art.ErrUnsupported] for what the
	// backend does not have, [art.ErrInvalid] for options that do nothing together.
	CheckTrain(cfg *art.TrainConfig) error
}

// RateChooser is a [art.Backend] that knows a learning rate for each model. Others get those of WithDefaults.
type RateChooser interface {
	// LearningRate returns that of a training of m whose configuration has none. It is above 0.
	LearningRate(m *art.Model) (float64, error)
}

// SFTTrainer is a [art.Backend] that can train on given answers.
type SFTTrainer interface {
	// TrainSFT makes the next step of m by supervised training on the assistant messages of the trajectories.
	TrainSFT(
		ctx context.Context, m *art.Model, trajectories []*art.Trajectory, cfg *art.SFTConfig,
	) (*art.TrainResult, error)
}

// DPOTrainer is a [art.Backend] that can train on preferences.
type DPOTrainer interface {
	// TrainDPO makes the next step of m by direct preference optimization. A Skip of its result has the index of a pair as
	// Group, and 0 for the chosen or 1 for the rejected trajectory.
	TrainDPO(ctx context.Context, m *art.Model, pairs []art.Preference, cfg *art.DPOConfig) (*art.TrainResult, error)
}
