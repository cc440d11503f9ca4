package art

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Recorder grows a trajectory out of the completions that are made with its contexts. It is what [Record] does for one
// function, for agents whose run begins and ends in other places: the requests of another process, for example. The
// rules are those of [Record]. It is safe for concurrent use.
type Recorder struct {
	mu          sync.Mutex
	closed      bool
	ignoreLate  bool // completions that end after Close succeed without being recorded
	trajectory  *Trajectory
	tools       []string // of each history, as one comparable text
	completions int
}

// NewRecorder starts a trajectory. Its Start is now.
func NewRecorder() *Recorder { return &Recorder{trajectory: NewTrajectory()} }

// recorderKey is the context key of a *Recorder.
type recorderKey struct{}

// Context returns a context whose completions are recorded by r, and by no recorder of ctx.
func (r *Recorder) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// Completions returns how many completions were recorded.
func (r *Recorder) Completions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.completions
}

// Snapshot returns a copy of what is recorded so far. Its Duration is 0 before [Recorder.Close].
func (r *Recorder) Snapshot() *Trajectory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trajectory.Clone()
}

// Close ends the recording and returns the trajectory, which the recorder no longer changes. A completion that ends
// later fails with an [ErrRecordingEnded], so that no client has a reply that is not recorded. Closing again returns
// the same trajectory.
func (r *Recorder) Close() *Trajectory {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.trajectory.Finish()
	}
	return r.trajectory
}

// recordCompletion hands a completion to the recorder of ctx, if there is one.
func recordCompletion(ctx context.Context, request *ChatRequest, reply Message) error {
	if r, ok := ctx.Value(recorderKey{}).(*Recorder); ok {
		return r.add(request, reply)
	}
	return nil
}

// add records one completion.
func (r *Recorder) add(request *ChatRequest, reply Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed && r.ignoreLate {
		return nil
	}
	if r.closed {
		return &Error{"record", ErrRecordingEnded, "the reply is dropped; end a recording after its last completion"}
	}
	tools := toolsText(request.Tools)
	h := r.continued(request.Messages, tools)
	if h == nil {
		h = r.fork(request, tools)
	}
	for _, m := range request.Messages[len(h.Messages):] {
		if m.Sample != nil && slices.Contains(r.trajectory.Samples(), m.Sample) {
			m.Sample = nil
		}
		h.Add(m)
	}
	h.Add(reply)
	r.completions++
	return nil
}

// continued returns the longest history that messages repeat, or nil.
func (r *Recorder) continued(messages []Message, tools string) *History {
	var best *History
	for i, h := range r.histories() {
		longer := best == nil || len(h.Messages) > len(best.Messages)
		if longer && r.tools[i] == tools && commonPrefix(messages, h.Messages) == len(h.Messages) {
			best = h
		}
	}
	return best
}

// fork starts a history. The first one is the trajectory's own; of the others the trajectory's logs say why.
func (r *Recorder) fork(request *ChatRequest, tools string) *History {
	t := r.trajectory
	if len(r.tools) == 0 {
		r.tools = append(r.tools, tools)
		t.Tools = request.Tools
		return &t.History
	}
	t.Logs = append(t.Logs, historyName(len(r.tools))+": "+r.forkReason(request.Messages))
	r.tools = append(r.tools, tools)
	t.AdditionalHistories = append(t.AdditionalHistories, History{Tools: request.Tools})
	return &t.AdditionalHistories[len(t.AdditionalHistories)-1]
}

// forkReason says where messages leave the history that they repeat furthest.
func (r *Recorder) forkReason(messages []Message) string {
	all, of, n := r.histories(), 0, -1
	for i, h := range all {
		if common := commonPrefix(messages, h.Messages); common > n {
			of, n = i, common
		}
	}
	switch known := all[of].Messages; {
	case n == len(known):
		return "the tools differ from those of " + historyName(of)
	case n == len(messages):
		return fmt.Sprintf("the request ends before message %d of %s: it was sent again, or is another branch",
			n, historyName(of))
	default:
		return fmt.Sprintf("message %d (%s) differs from that of %s in its %s",
			n, messages[n].Role, historyName(of), difference(&messages[n], &known[n]))
	}
}

// historyName names the i-th of a trajectory's histories as its stored JSON does.
func historyName(i int) string {
	if i == 0 {
		return "the main history"
	}
	return fmt.Sprintf("additional_histories[%d]", i-1)
}

// histories returns the histories that were started.
func (r *Recorder) histories() []*History {
	if len(r.tools) == 0 {
		return nil
	}
	return r.trajectory.Histories()
}
