package art

import (
	"encoding/json"
	"fmt"
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

	// began is Start with the reading of the monotonic clock, until Finish: the wall clock may be set meanwhile.
	began time.Time
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
	began := time.Now()
	return &Trajectory{
		History: History{Messages: messages},
		Metrics: map[string]float64{}, Metadata: map[string]any{},
		Start: began.UTC().Round(0), began: began,
	}
}

func newGroup() *TrajectoryGroup {
	return &TrajectoryGroup{Metrics: map[string]float64{}, Metadata: map[string]any{}}
}

// Finish sets Duration to the time since Start, at least 0. After [NewTrajectory] it does not matter when the clock is
// set in between.
func (t *Trajectory) Finish() {
	start := t.Start
	if start.Equal(t.began.Round(0)) {
		start = t.began
	}
	t.Duration, t.began = max(0, time.Since(start)), time.Time{}
}

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

// storedHistory is a [History] in stored JSON. Samples are beside the messages, whose form is the wire's.
type storedHistory struct {
	Messages []Message       `json:"messages"`
	Samples  []*storedSample `json:"samples,omitempty"` // of each message, null for none; absent when there is none at all
	Tools    []Tool          `json:"tools,omitempty"`
}

type storedSample struct {
	PromptIDs []int32   `json:"prompt_ids,omitempty"`
	IDs       []int32   `json:"ids,omitempty"`
	Logprobs  numbers32 `json:"logprobs,omitempty"`
	Sampled   numbers32 `json:"sampled,omitempty"`
	Forced    []bool    `json:"forced,omitempty"`
	Settings  Sampling  `json:"settings"`
	Step      int       `json:"step"`
	Finish    string    `json:"finish,omitempty"`
}

type storedTrajectory struct {
	storedHistory
	AdditionalHistories []storedHistory   `json:"additional_histories,omitempty"`
	Reward              number            `json:"reward"`
	Metrics             map[string]number `json:"metrics,omitempty"`
	Metadata            map[string]label  `json:"metadata,omitempty"`
	Logs                []string          `json:"logs,omitempty"`
	Start               *time.Time        `json:"start,omitempty"`    // UTC
	Duration            time.Duration     `json:"duration,omitempty"` // nanoseconds
}

type storedGroup struct {
	Trajectories []*storedTrajectory `json:"trajectories"`
	Failures     []Failure           `json:"failures,omitempty"`
	Metrics      map[string]number   `json:"metrics,omitempty"`
	Metadata     map[string]label    `json:"metadata,omitempty"`
	Logs         []string            `json:"logs,omitempty"`
}

// storedError is what a failed read of stored JSON returns.
func storedError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{op, fmt.Errorf("%w: %w", ErrCorrupt, err), "the form is what MarshalJSON writes"}
}

// MarshalJSON writes the messages, with their samples beside them, and the tools.
func (h History) MarshalJSON() ([]byte, error) { return json.Marshal(storeHistory(&h)) }

// UnmarshalJSON reads what [History.MarshalJSON] wrote. Damage is an [ErrCorrupt] that names the field.
func (h *History) UnmarshalJSON(data []byte) error {
	return storedError("read history", h.decode(data))
}

// MarshalJSON writes the stored form of a trajectory: messages and tools in OpenAI's wire form, samples beside the
// messages ("samples": [null, {...}]), durations in nanoseconds, NaN and infinities as strings. It is lossless:
// logprobs keep every bit and labels their type. Start is written in UTC. A label of a type that [Trajectory] does not
// allow is an error.
func (t Trajectory) MarshalJSON() ([]byte, error) { return json.Marshal(storeTrajectory(&t)) }

func storeTrajectory(t *Trajectory) *storedTrajectory {
	if t == nil {
		return nil
	}
	s := &storedTrajectory{
		storedHistory: storeHistory(&t.History), Reward: number(t.Reward), Metrics: numbersOf(t.Metrics),
		Metadata: labelsOf(t.Metadata), Logs: t.Logs, Duration: t.Duration,
	}
	for i := range t.AdditionalHistories {
		s.AdditionalHistories = append(s.AdditionalHistories, storeHistory(&t.AdditionalHistories[i]))
	}
	if !t.Start.IsZero() {
		start := t.Start.UTC()
		s.Start = &start
	}
	return s
}

// UnmarshalJSON reads what [Trajectory.MarshalJSON] wrote. Unknown fields are ignored. Damage is an [ErrCorrupt] that
// names the field.
func (t *Trajectory) UnmarshalJSON(data []byte) error {
	return storedError("read trajectory", t.decode(data))
}

// MarshalJSON writes the stored form of a group; see [Trajectory.MarshalJSON].
func (g TrajectoryGroup) MarshalJSON() ([]byte, error) {
	var stored []*storedTrajectory // nil is null
	if g.Trajectories != nil {
		stored = make([]*storedTrajectory, len(g.Trajectories))
	}
	for i, t := range g.Trajectories {
		stored[i] = storeTrajectory(t)
	}
	return json.Marshal(storedGroup{stored, g.Failures, numbersOf(g.Metrics), labelsOf(g.Metadata), g.Logs})
}

// UnmarshalJSON reads what [TrajectoryGroup.MarshalJSON] wrote; see [Trajectory.UnmarshalJSON].
func (g *TrajectoryGroup) UnmarshalJSON(data []byte) error {
	return storedError("read group", g.decode(data))
}

func storeHistory(h *History) storedHistory {
	s := storedHistory{Messages: h.Messages, Tools: h.Tools}
	if s.Messages == nil {
		s.Messages = []Message{} // "[]", not null
	}
	for i := range h.Messages {
		sample := h.Messages[i].Sample
		if sample == nil {
			continue
		}
		if s.Samples == nil {
			s.Samples = make([]*storedSample, len(h.Messages))
		}
		s.Samples[i] = &storedSample{
			PromptIDs: sample.PromptIDs, IDs: sample.IDs, Logprobs: sample.Logprobs, Sampled: sample.Sampled,
			Forced: sample.Forced, Settings: sample.Settings, Step: sample.Step, Finish: sample.Finish,
		}
	}
	return s
}

func numbersOf(metrics map[string]float64) map[string]number {
	out := make(map[string]number, len(metrics))
	for key, x := range metrics {
		out[key] = number(x)
	}
	return out
}

func labelsOf(metadata map[string]any) map[string]label {
	out := make(map[string]label, len(metadata))
	for key, v := range metadata {
		out[key] = label{v}
	}
	return out
}

func (h *History) decode(data []byte) error {
	d := newDecoder(data)
	read := History{
		Messages: elements(d, "messages", (*Message).decode), Tools: elements(d, "tools", (*Tool).decode),
	}
	samples := elements(d, "samples", func(s **Sample, data []byte) (err error) { *s, err = readSample(data); return err })
	if len(samples) != 0 && len(samples) != len(read.Messages) {
		d.fail("samples", "has %d elements for %d messages", len(samples), len(read.Messages))
	}
	if d.err != nil {
		return d.err
	}
	for i, s := range samples {
		read.Messages[i].Sample = s
	}
	*h = read
	return nil
}

func readSample(data []byte) (*Sample, error) {
	if kindOf(data) == kindNull {
		return nil, nil
	}
	s, d := &Sample{}, newDecoder(data)
	d.into("prompt_ids", &s.PromptIDs)
	d.into("ids", &s.IDs)
	d.into("logprobs", (*numbers32)(&s.Logprobs))
	d.into("sampled", (*numbers32)(&s.Sampled))
	d.into("forced", &s.Forced)
	d.into("settings", &s.Settings)
	d.into("step", &s.Step)
	d.into("finish", &s.Finish)
	return s, d.err
}

func (t *Trajectory) decode(data []byte) error {
	var read Trajectory
	d := newDecoder(data)
	d.nested("", read.History.decode(data))
	read.AdditionalHistories = elements(d, "additional_histories", (*History).decode)
	d.into("reward", (*number)(&read.Reward))
	read.Metrics, read.Metadata = d.metrics(), d.metadata()
	d.into("logs", &read.Logs)
	d.into("start", &read.Start)
	d.into("duration", &read.Duration)
	if d.err == nil {
		*t = read
	}
	return d.err
}

func (g *TrajectoryGroup) decode(data []byte) error {
	var read TrajectoryGroup
	d := newDecoder(data)
	read.Trajectories = elements(d, "trajectories", func(t **Trajectory, data []byte) error {
		if kindOf(data) == kindNull {
			return nil
		}
		*t = &Trajectory{}
		return (*t).decode(data)
	})
	d.into("failures", &read.Failures)
	read.Metrics, read.Metadata = d.metrics(), d.metadata()
	d.into("logs", &read.Logs)
	if d.err == nil {
		*g = read
	}
	return d.err
}

func (d *decoder) metrics() map[string]float64 {
	return entries(d, "metrics", func(raw []byte) (float64, error) {
		var x number
		err := x.UnmarshalJSON(raw)
		return float64(x), err
	})
}

func (d *decoder) metadata() map[string]any {
	return entries(d, "metadata", func(raw []byte) (any, error) {
		var l label
		err := l.UnmarshalJSON(raw)
		return l.value, err
	})
}
