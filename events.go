package art

import (
	"cmp"
	"time"

	"github.com/goart-dev/art/grpo/credit"
)

// Events are callbacks: to draw progress, to export it, to stop early. Any may be nil. Set them as
// [GatherOptions].Events and [ModelOptions].Events; [JoinEvents] combines several.
//
// The callbacks of one gather are called one at a time, and so are those of one call of [Model.Train]; different
// gathers and trainings may overlap, and completions overlap everything. Rollouts and training wait for the callbacks.
// They must not change their arguments, and may keep them. A panic in a gather ends it with an error; a panic in a
// training or a completion reaches the caller.
type Events struct {
	// GatherStart is called before the first rollout of a gather.
	GatherStart func(GatherStart)
	// RolloutStart is called before the first try of a rollout.
	RolloutStart func(RolloutStart)
	// RolloutEnd is called after the last try of a rollout. Rollouts that are cancelled have none.
	RolloutEnd func(RolloutEnd)
	// GroupEnd is called with each complete group, after [GatherOptions].After.
	GroupEnd func(GroupEnd)
	// GatherEnd is called after the last rollout of a gather.
	GatherEnd func(GatherEnd)

	// Register is called when [Model.Register] has succeeded.
	Register func(Registration)
	// Completion is called after each call of [Model.Complete] and [Model.Stream] that reached the backend: also those of
	// [Model.Chat] and of HTTP clients, and failed ones. It is one of [ModelOptions].Events.
	Completion func(CompletionEvent)
	// TrainStart is called before a step is made, by [Model.Train], [Model.TrainSFT] or [Model.TrainDPO].
	TrainStart func(TrainStart)
	// OptimizerStep is called after each optimizer step.
	OptimizerStep func(OptimizerStep)
	// Skip is called after a training for each group or trajectory that was left out.
	Skip func(SkipEvent)
	// Drop is called for each group that a [Pipeline] does not train on.
	Drop func(DropEvent)
	// Commit is called when a step is made and stored.
	Commit func(Commit)
	// TrainError is called when a training fails. The model stays at the previous step.
	TrainError func(TrainError)
	// Log is called when [Model.Log] has stored something.
	Log func(LogEvent)
}

// GatherStart describes a gather that begins.
type GatherStart struct {
	Time      time.Time
	Scenarios int
	GroupSize int    // rollouts of a scenario
	Seed      uint64 // of the options
	Gather    uint64 // names the gather in this process, in the events below
}

// RolloutStart describes a rollout that begins.
type RolloutStart struct {
	Time     time.Time
	Scenario int // index in the call
	Attempt  int // index in the group
	Gather   uint64
}

// RolloutEnd describes a rollout that has ended. Either Trajectory or Failure is set.
type RolloutEnd struct {
	RolloutStart
	Duration   time.Duration // of all tries, and the pauses between them
	Trajectory *Trajectory
	Failure    *Failure
	Progress   GatherProgress
}

// GroupEnd describes a complete group.
type GroupEnd struct {
	Gather   uint64
	Scenario int
	// Groups are what is returned for the scenario: one, unless [GatherOptions].After changes that.
	Groups []*TrajectoryGroup
}

// GatherEnd describes a gather that has ended.
type GatherEnd struct {
	Gather   uint64
	Duration time.Duration
	Progress GatherProgress
	Err      error // what the gather returns
}

// GatherProgress is the progress of a gather.
type GatherProgress struct {
	Done, Total int // rollouts; failed ones count as done
	Failed      int
	Reward      float64 // mean of the trajectories so far, 0 before the first
	Tokens      int     // sampled in the trajectories so far
}

// CompletionEvent describes a completion that has ended. Either Response or Err is set.
type CompletionEvent struct {
	Model *Model
	// Rollout is that of the gather that the call's context comes from, nil outside of one, and Try counts its tries from
	// 0.
	Rollout  *RolloutStart
	Try      int
	Time     time.Time // of the call
	Duration time.Duration
	Request  *ChatRequest
	Response *ChatResponse
	Err      error
}

// TrainStart describes a training that begins.
type TrainStart struct {
	Model        *Model
	Time         time.Time
	Step         int // to be made
	Groups       int
	Trajectories int
	// Config is that of [Model.Train], SFT that of [Model.TrainSFT] and DPO that of [Model.TrainDPO], with defaults; the
	// others are nil. The groups of TrainDPO are its pairs.
	Config *TrainConfig
	SFT    *SFTConfig
	DPO    *DPOConfig
}

// OptimizerStep is the progress of a training.
type OptimizerStep struct {
	Model *Model
	Step  int // being made
	TrainProgress
}

// SkipEvent describes a group or trajectory that was not trained on.
type SkipEvent struct {
	Model *Model
	Step  int // of the row that the training belongs to
	Skip
}

// DropEvent describes a group that a pipeline has dropped.
type DropEvent struct {
	Model *Model
	Step  int // that the model is at
	// Group is nil when its rollouts were cancelled.
	Group  *TrajectoryGroup
	Reason credit.Reason
}

// Commit describes a new step.
type Commit struct {
	Model *Model
	// Result is what the training returns. Its metrics belong to row Result.Step-1 of split "train".
	Result *TrainResult
	// Groups were trained on, those that were skipped included. For supervised training it is one group.
	Groups   []*TrajectoryGroup
	Duration time.Duration
}

// Registration describes a model that was registered.
type Registration struct {
	Model *Model
	Step  int // that it continues at; 0 of a new run
}

// TrainError describes a training that failed.
type TrainError struct {
	Model *Model
	Step  int // not made
	Err   error
}

// LogEvent describes what was logged.
type LogEvent struct {
	Model  *Model
	Split  string
	Step   int
	Groups []*TrajectoryGroup
	// Metrics are all that were stored. Their keys begin with the split or another section.
	Metrics map[string]float64
}

// JoinEvents returns events that call the functions of each of list, in order. Entries may be nil.
func JoinEvents(list ...*Events) *Events {
	joined := &Events{}
	for _, e := range list {
		if e == nil {
			continue
		}
		joined.GatherStart = both(joined.GatherStart, e.GatherStart)
		joined.RolloutStart = both(joined.RolloutStart, e.RolloutStart)
		joined.RolloutEnd = both(joined.RolloutEnd, e.RolloutEnd)
		joined.GroupEnd = both(joined.GroupEnd, e.GroupEnd)
		joined.GatherEnd = both(joined.GatherEnd, e.GatherEnd)
		joined.Register = both(joined.Register, e.Register)
		joined.Completion = both(joined.Completion, e.Completion)
		joined.TrainStart = both(joined.TrainStart, e.TrainStart)
		joined.OptimizerStep = both(joined.OptimizerStep, e.OptimizerStep)
		joined.Skip = both(joined.Skip, e.Skip)
		joined.Drop = both(joined.Drop, e.Drop)
		joined.Commit = both(joined.Commit, e.Commit)
		joined.TrainError = both(joined.TrainError, e.TrainError)
		joined.Log = both(joined.Log, e.Log)
	}
	return joined
}

var noEvents Events

func (m *Model) events() *Events { return cmp.Or(m.opts.Events, &noEvents) }

func both[T any](f, g func(T)) func(T) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(event T) { f(event); g(event) }
}

func tell[T any](f func(T), event T) {
	if f != nil {
		f(event)
	}
}
