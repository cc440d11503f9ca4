package art

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Record runs f and returns a trajectory of every completion made with f's context, by [Model.Chat], [Model.Complete],
// [Model.Sample] or an HTTP client from [Model.HTTPClient], whatever code is in between. f may call the model from
// several goroutines; completions that end after f has returned are not recorded. Of nested Records, the innermost
// records.
//
// A request that repeats a recorded conversation and adds to it continues it; any other request, and one with other
// tools, starts a new history: the first is the trajectory's own, the others are additional. Messages are compared by
// what survives a client that rebuilds them (role, text, tool calls), and the recorded message, with its [Sample], is
// kept. Each sample is in one history only: where a conversation forks, the fork repeats the text without it, and a
// line of [Trajectory].Logs says why it forked.
//
// Prompts of token ids have histories of their own: one that begins with all ids of a history, those of its last reply
// included, continues it. What of the prompt is new is a message of the user with its text, as the backend's
// driver.Tokenizer decodes it; the ids are in the samples.
//
// The trajectory is returned also when f fails, with f's error; when the model's last response to an HTTP client was an
// error, its message is added. When f succeeds and nothing was recorded, because its calls had another context or
// failed, or because a nested Record has them all, the trajectory has no messages and the error is an
// [ErrNothingRecorded]; callers whose f may skip the model ignore that error. The caller sets the reward.
func Record(ctx context.Context, f func(ctx context.Context) error) (*Trajectory, error) {
	r := NewRecorder()
	r.ignoreLate = true
	defer r.Close()
	ctx, refused := withRefusal(ctx)
	err := f(r.Context(ctx))
	t := r.Close()
	if err == nil && len(t.Messages) == 0 {
		err = &Error{"record", ErrNothingRecorded,
			"pass the context of the function to each call of the model; failed calls are not recorded"}
	}
	return t, refused.explained(err)
}

// commonPrefix returns how many messages a and b have in common at their beginning, compared by [difference].
func commonPrefix(a, b []Message) int {
	n := 0
	for n < min(len(a), len(b)) && difference(&a[n], &b[n]) == "" {
		n++
	}
	return n
}

// difference names the first thing that two messages do not have in common, or is "". It compares what survives a
// client that stores messages in its own structs: not samples, reasoning and unknown fields, nor the name of an
// assistant, which some clients add.
func difference(a, b *Message) string {
	switch {
	case a.Role != b.Role:
		return "role"
	case a.ToolCallID != b.ToolCallID:
		return "tool call id"
	case a.Name != b.Name && a.Role != RoleAssistant:
		return "name"
	case a.Content != b.Content:
		return "content"
	case !bytes.Equal(a.media(), b.media()):
		return "images or other media"
	case !sameCalls(a.ToolCalls, b.ToolCalls):
		return "tool calls"
	}
	return ""
}

func sameCalls(a, b []ToolCall) bool {
	return slices.EqualFunc(a, b, func(a, b ToolCall) bool {
		if a.ID != b.ID || a.Name != b.Name {
			return false
		}
		if a.Arguments == b.Arguments {
			return true
		}
		x, okX := decodeAny(a.Arguments) // for clients that decode and encode arguments
		y, okY := decodeAny(b.Arguments)
		return okX && okY && reflect.DeepEqual(x, y)
	})
}

// decodeAny decodes JSON text, and keeps numbers as they are written.
func decodeAny(s string) (v any, ok bool) {
	if !json.Valid([]byte(s)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// toolsText renders tools so that equal texts are equal tools.
func toolsText(tools []Tool) string {
	var b strings.Builder
	for i := range tools {
		fields := []string{tools[i].Name, tools[i].Description, string(normalize(tools[i].Parameters))}
		text, _ := json.Marshal(fields) // strings always encode
		b.Write(text)
	}
	return b.String()
}

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

func (r *Recorder) add(request *ChatRequest, reply Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if drop, err := r.late(); drop {
		return err
	}
	tools := toolsText(request.Tools)
	h := r.continued(request.Messages, tools)
	if h == nil {
		h = r.begin(request.Tools, tools, func() string { return r.forkReason(request.Messages) })
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

// late reports whether a completion is dropped because the recording has ended, and the error of that.
func (r *Recorder) late() (drop bool, err error) {
	if r.closed && !r.ignoreLate {
		err = &Error{"record", ErrRecordingEnded, "the reply is dropped; end a recording after its last completion"}
	}
	return r.closed, err
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

// begin starts a history; text are its tools as one comparable text. The first one is the trajectory's own; of the
// others the trajectory's logs say why.
func (r *Recorder) begin(tools []Tool, text string, why func() string) *History {
	t := r.trajectory
	if len(r.tools) == 0 {
		r.tools = append(r.tools, text)
		t.Tools = tools
		return &t.History
	}
	t.Logs = append(t.Logs, historyName(len(r.tools))+": "+why())
	r.tools = append(r.tools, text)
	t.AdditionalHistories = append(t.AdditionalHistories, History{Tools: tools})
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

func (r *Recorder) histories() []*History {
	if len(r.tools) == 0 {
		return nil
	}
	return r.trajectory.Histories()
}

// CaptureYield runs f and returns the trajectory that code below it hands out with [Yield], however deep in the call
// stack: for agents whose functions cannot return one. f has to hand on the context that it is given.
//
// The trajectory is returned also when f fails, with f's error. When f succeeds without a Yield the error is an
// [ErrNothingRecorded].
func CaptureYield(ctx context.Context, f func(ctx context.Context) error) (*Trajectory, error) {
	c := &capture{}
	err := f(context.WithValue(ctx, captureKey{}, c))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if err == nil && c.t == nil {
		err = &Error{"capture yield", ErrNothingRecorded, "call art.Yield with the context that the function is given"}
	}
	return c.t, err
}

// Yield hands t to the innermost [CaptureYield] that ctx comes from. It is an [ErrInvalid] without one, after it has
// ended, for a nil trajectory, and for a second trajectory.
func Yield(ctx context.Context, t *Trajectory) error {
	c, ok := ctx.Value(captureKey{}).(*capture)
	err := errors.New("the context does not come from CaptureYield")
	if ok {
		err = c.take(t)
	}
	if err == nil {
		return nil
	}
	return problems{err.Error()}.err("yield", "yield one trajectory within CaptureYield, with its context")
}

type captureKey struct{}

type capture struct {
	mu     sync.Mutex
	closed bool
	t      *Trajectory
}

func (c *capture) take(t *Trajectory) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case t == nil:
		return errors.New("the trajectory is nil")
	case c.closed:
		return errors.New("CaptureYield has returned")
	case c.t != nil:
		return errors.New("a trajectory was yielded already")
	}
	c.t = t
	return nil
}

// tokensHistory stands for the tools of a history that consists of token ids, which has none.
const tokensHistory = "token ids"

// recordSample hands a reply to a prompt of token ids to the recorder of ctx, if there is one.
func recordSample(ctx context.Context, m *Model, reply *ChatResponse) error {
	r, ok := ctx.Value(recorderKey{}).(*Recorder)
	if !ok {
		return nil
	}
	if reply.Message.Sample == nil {
		return &Error{"record", fmt.Errorf("the reply of model %s has no sample", m.name), "its Sampler must set it"}
	}
	return r.addSample(reply.Message, func(ids []int32) (string, error) {
		tokenizer, ok := m.backend.(tokenizer)
		if !ok {
			return "", nil
		}
		return tokenizer.Decode(ctx, m, ids)
	})
}

// addSample records a reply to a prompt of token ids. text decodes what of the prompt is new, which stands before the
// reply as a message of the user.
func (r *Recorder) addSample(reply Message, text func(ids []int32) (string, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if drop, err := r.late(); drop {
		return err
	}
	prompt := reply.Sample.PromptIDs
	var h *History // whose ids the prompt repeats furthest
	var known []int32
	for i, one := range r.histories() {
		ids := r.idsOf(i, one)
		if len(ids) > len(known) && len(ids) <= len(prompt) && slices.Equal(ids, prompt[:len(ids)]) {
			h, known = one, ids
		}
	}
	added, err := text(prompt[len(known):])
	if err != nil {
		return err
	}
	if h == nil {
		h = r.begin(nil, tokensHistory, func() string { return r.tokensForkReason(prompt) })
	}
	if len(known) < len(prompt) {
		h.Add(User(added))
	}
	h.Add(reply)
	r.completions++
	return nil
}

// idsOf returns all ids of a history that consists of token ids, nil for another one.
func (r *Recorder) idsOf(i int, h *History) []int32 {
	if r.tools[i] != tokensHistory {
		return nil
	}
	s := h.Messages[len(h.Messages)-1].Sample
	return slices.Concat(s.PromptIDs, s.IDs)
}

// tokensForkReason says where a prompt leaves the history whose ids it repeats furthest.
func (r *Recorder) tokensForkReason(prompt []int32) string {
	of, common := -1, 0
	for i, h := range r.histories() {
		ids := r.idsOf(i, h)
		n := 0
		for n < min(len(ids), len(prompt)) && ids[n] == prompt[n] {
			n++
		}
		if ids != nil && (of < 0 || n > common) {
			of, common = i, n
		}
	}
	if of < 0 {
		return "it consists of token ids, and the others of messages"
	}
	return fmt.Sprintf("of the %d token ids of the prompt the first %d are those of %s, which has more or others",
		len(prompt), common, historyName(of))
}
