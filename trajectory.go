package art

import (
	"maps"
	"slices"
	"time"
)

// History is a conversation: what was said and which tools were offered.
type History struct {
	Messages []Message
	Tools    []Tool
}

// Add appends messages.
func (h *History) Add(messages ...Message) { h.Messages = append(h.Messages, messages...) }

// Breaks returns the indices of the messages whose sample does not continue the previous sample: its prompt does not
// begin with that sample's prompt and ids. Breaks come from edited messages, and from chat templates that render
// earlier replies differently from how they were sampled, for example without their reasoning. The messages between two
// breaks are trained on as one sequence, and tokens before a break are computed again.
func (h *History) Breaks() []int {
	var breaks []int
	var last *Sample
	for i := range h.Messages {
		s := h.Messages[i].Sample
		if s == nil {
			continue
		}
		if last != nil && !last.continuedBy(s) {
			breaks = append(breaks, i)
		}
		last = s
	}
	return breaks
}

// continuedBy reports whether the prompt of a later sample begins with the prompt and the ids of s.
func (s *Sample) continuedBy(later *Sample) bool {
	n := len(s.PromptIDs)
	return len(later.PromptIDs) >= n+len(s.IDs) && slices.Equal(later.PromptIDs[:n], s.PromptIDs) &&
		slices.Equal(later.PromptIDs[n:n+len(s.IDs)], s.IDs)
}

// Trajectory is one run of an agent: its conversation, and how good it was.
type Trajectory struct {
	History
	// AdditionalHistories hold what does not continue the first one: sub-agents, compacted contexts.
	AdditionalHistories []History
	// Reward is compared within a group only. Higher is better.
	Reward float64
	// Metrics are numbers to average and plot. nil is none. [NewTrajectory], [Record] and reading a stored trajectory make
	// the map; a literal Trajectory has none.
	Metrics map[string]float64
	// Metadata are labels: string, bool, int, float64 or nil. The map is made as that of Metrics.
	Metadata map[string]any
	// Logs are lines for readers of the run. They are stored and not used otherwise.
	Logs []string
	// Start is when the run began, and Duration how long it took; 0 is unknown. [NewTrajectory] sets the first and
	// [Trajectory.Finish], a gather or [Record] the second.
	Start    time.Time
	Duration time.Duration
}

// TrajectoryGroup is a set of runs that can be compared: the same task, tried several times.
type TrajectoryGroup struct {
	Trajectories []*Trajectory
	// Failures are the rollouts that returned an error or panicked.
	Failures []Failure
	// Metrics are numbers of the group as a whole: [Model.Log] averages them as "group_<k>". [GatherGroups], [Gather] and
	// reading a stored group make the map.
	Metrics map[string]float64
	// Metadata are labels, as those of [Trajectory].
	Metadata map[string]any
	// Logs are lines for readers of the group.
	Logs []string
}

// Failure is a rollout that did not produce a trajectory.
type Failure struct {
	// Scenario is the index of the scenario in the call to [Gather] or [GatherGroups].
	Scenario int `json:"scenario"`
	// Attempt is the index of the rollout within its group.
	Attempt int `json:"attempt"`
	// Tries is the number of tries.
	Tries int `json:"tries"`
	// Type is the Go type of the last error, or "panic".
	Type    string `json:"type"`
	Message string `json:"message"`
	// Stack is set for a panic: the call stack, innermost first, without the frames of the runtime and of the gather.
	Stack string `json:"stack,omitempty"`
}

// NewTrajectory starts a trajectory with the given messages, and with maps for Metrics and Metadata. Start is now.
func NewTrajectory(messages ...Message) *Trajectory {
	return &Trajectory{
		History: History{Messages: messages},
		Metrics: map[string]float64{}, Metadata: map[string]any{},
		Start: time.Now().UTC().Round(0),
	}
}

// newGroup returns a group without trajectories.
func newGroup() *TrajectoryGroup {
	return &TrajectoryGroup{Metrics: map[string]float64{}, Metadata: map[string]any{}}
}

// Finish sets Duration to the time since Start.
func (t *Trajectory) Finish() { t.Duration = time.Since(t.Start) }

// Histories returns the main history and the additional ones, in order.
func (t *Trajectory) Histories() []*History {
	out := []*History{&t.History}
	for i := range t.AdditionalHistories {
		out = append(out, &t.AdditionalHistories[i])
	}
	return out
}

// Samples returns what the trained model wrote, over all histories in order.
func (t *Trajectory) Samples() []*Sample {
	var out []*Sample
	for _, h := range t.Histories() {
		for i := range h.Messages {
			if s := h.Messages[i].Sample; s != nil {
				out = append(out, s)
			}
		}
	}
	return out
}

// PolicySteps returns the lowest and the highest policy step among the samples. ok is false when there is no sample.
func (t *Trajectory) PolicySteps() (first, last int, ok bool) {
	for _, s := range t.Samples() {
		if !ok {
			first, last, ok = s.Step, s.Step, true
		}
		first, last = min(first, s.Step), max(last, s.Step)
	}
	return first, last, ok
}

// Clone returns a deep copy. Samples are shared: they are never changed.
func (t *Trajectory) Clone() *Trajectory {
	if t == nil {
		return nil
	}
	c := *t
	c.History = t.History.clone()
	c.AdditionalHistories = slices.Clone(t.AdditionalHistories)
	for i, h := range c.AdditionalHistories {
		c.AdditionalHistories[i] = h.clone()
	}
	c.Metrics, c.Metadata, c.Logs = maps.Clone(t.Metrics), maps.Clone(t.Metadata), slices.Clone(t.Logs)
	return &c
}

// Clone returns a deep copy. Samples are shared: they are never changed.
func (g *TrajectoryGroup) Clone() *TrajectoryGroup {
	if g == nil {
		return nil
	}
	c := *g
	c.Trajectories = slices.Clone(g.Trajectories)
	for i, t := range c.Trajectories {
		c.Trajectories[i] = t.Clone()
	}
	c.Failures = slices.Clone(g.Failures)
	c.Metrics, c.Metadata, c.Logs = maps.Clone(g.Metrics), maps.Clone(g.Metadata), slices.Clone(g.Logs)
	return &c
}

// clone returns a deep copy that shares the samples.
func (h History) clone() History {
	return History{Messages: cloneMessages(h.Messages), Tools: cloneTools(h.Tools)}
}

// TrackDuration starts a clock. The function that it returns stops it and adds the seconds to the metric
// name_duration of t, so that several parts of the same name sum up:
//
//	defer t.TrackDuration("search")()
//
// Stopping a second time adds nothing. Like all of a trajectory it is not for concurrent use.
func (t *Trajectory) TrackDuration(name string) (stop func()) {
	start, running := time.Now(), true
	return func() {
		if !running {
			return
		}
		running = false
		if t.Metrics == nil {
			t.Metrics = map[string]float64{}
		}
		t.Metrics[name+"_duration"] += time.Since(start).Seconds()
	}
}
