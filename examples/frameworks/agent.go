package frameworks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/examples/agents/mcp/synthetic"
)

// System is the system message of the agents.
const System = "Use the tools. Call a tool again when it is busy. Then answer in a few words."

// MaxTurns is how many replies the model of an agent may write. Frameworks end a run that has not come to an end by
// then.
const MaxTurns = 8

// Env is what an agent works with.
type Env struct {
	// Client answers requests of OpenAI's and Anthropic's APIs as the model, in this process. The host does not matter.
	Client *http.Client
	// Model and Chat are for adapters that call the model without HTTP.
	Model *art.Model
	Chat  *art.ChatOptions
	// Desk has the tools.
	Desk *Desk
	// Task is what the user asks for.
	Task string
}

// Agent works on the task and returns its answer.
type Agent func(ctx context.Context, e *Env) (answer string, err error)

// Play runs an agent and returns what it said, the answer, and the error of the agent. Without a trajectory the error
// is none of the agent.
type Play func(ctx context.Context, e *Env) (t *art.Trajectory, answer string, err error)

// InProcess plays an agent of this process. What the model says is recorded.
func InProcess(agent Agent) Play {
	return func(ctx context.Context, e *Env) (*art.Trajectory, string, error) {
		var answer string
		t, err := art.Record(ctx, func(ctx context.Context) (err error) {
			answer, err = agent(ctx, e)
			return err
		})
		if len(t.Messages) == 0 {
			return nil, "", err
		}
		return t, answer, err
	}
}

// Rollout returns the rollout of a model for [agents.Training], in the shop of a seed. All attempts of a scenario meet
// the same faults, call by call.
func Rollout(play Play, seed uint64, faults Faults) func(*art.Model, *art.ChatOptions) func(
	context.Context, mcp.Scenario) (*art.Trajectory, error) {
	return func(m *art.Model, opts *art.ChatOptions) func(context.Context, mcp.Scenario) (*art.Trajectory, error) {
		return func(ctx context.Context, s mcp.Scenario) (*art.Trajectory, error) {
			h := fnv.New64a()
			_, _ = h.Write([]byte(s.ID)) // a hash does not fail
			luck := rand.New(rand.NewPCG(art.GroupRand(ctx).Uint64(), h.Sum64()))
			sampled := &sampledBy{next: m.HTTPClient().Transport, opts: opts}
			e := &Env{
				Client: &http.Client{Transport: sampled}, Model: m, Chat: opts, Task: s.Task,
				Desk: NewDesk(seed, faults, luck),
			}
			t, answer, err := play(ctx, e)
			if broken := e.broken(ctx, sampled, err); broken || t == nil {
				return nil, fmt.Errorf("scenario %s: %w", s.ID, err)
			}
			return t, score(seed, s, e.Desk, t, answer, err)
		}
	}
}

// broken tells that a run ended by what is not the agent's doing, so that it says nothing about the model. Too many
// turns, a tool that does not exist and arguments that cannot be read are the agent's, whatever error they become.
func (e *Env) broken(ctx context.Context, sampled *sampledBy, err error) bool {
	var ours *art.Error
	model := errors.As(err, &ours) && !errors.Is(err, art.ErrContextLength)
	_, down := e.Desk.Faults()
	return err != nil && (ctx.Err() != nil || down || sampled.failed.Load() || model)
}

func score(seed uint64, s mcp.Scenario, d *Desk, t *art.Trajectory, answer string, failure error) error {
	// Frameworks pass on a call of a tool that cannot be read as text: that is no answer.
	completed := failure == nil && !strings.Contains(answer, "<tool_call>")
	score, err := synthetic.Orders.Score(seed, s, d.run(answer, completed))
	if err != nil {
		return err
	}
	if failure != nil {
		t.Logs = append(t.Logs, "the agent failed: "+failure.Error())
	}
	// Only a solved task is rewarded: a credit for an answer alone is learned before tools are.
	t.Reward = one(score == 1)
	t.Metadata[agents.ScenarioKey], t.Metadata["task"] = s.ID, s.Task
	for name, value := range map[string]float64{
		"solved": one(score == 1), "completed": one(completed), "turns": float64(len(t.Samples())),
		"tool_calls": float64(d.calls), "tool_busy": float64(d.busy),
	} {
		t.Metrics[name] = value
	}
	return nil
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// sampledBy decides how replies are sampled, whatever an agent asks for: some frameworks always send a temperature of
// their own. It also notes when the model fails.
type sampledBy struct {
	next   http.RoundTripper
	opts   *art.ChatOptions
	failed atomic.Bool // with a status of 500 or more, or without an answer
}

func (s *sampledBy) RoundTrip(r *http.Request) (*http.Response, error) {
	r, err := s.with(r)
	if err != nil {
		return nil, err
	}
	response, err := s.next.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		s.failed.Store(true)
	}
	return response, err
}

func (s *sampledBy) with(r *http.Request) (*http.Request, error) {
	if r.Body == nil {
		return r, nil
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, fmt.Errorf("the body of a request: %w", err)
	}
	delete(body, "temperature")
	if s.opts != nil && s.opts.Temperature != nil {
		body["temperature"] = fmt.Append(nil, *s.opts.Temperature)
	}
	if s.opts != nil && s.opts.MaxTokens != nil {
		body["max_tokens"] = fmt.Append(nil, *s.opts.MaxTokens)
		delete(body, "max_completion_tokens")
	}
	if text, err = json.Marshal(body); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return r, nil
}

// Names of the tools of a [Desk].
const (
	FindOrder   = "find_order"
	OrderStatus = "order_status"
	CancelOrder = "cancel_order"
)

// Descriptions of the tools.
const (
	FindOrderAbout   = "Find the order of a customer."
	OrderStatusAbout = "Status of an order."
	CancelOrderAbout = "Cancel an order."
)

// CustomerArgs are the arguments of find_order.
type CustomerArgs struct {
	Customer string `json:"customer"`
}

// OrderArgs are the arguments of order_status and cancel_order.
type OrderArgs struct {
	Order string `json:"order"`
}

// ErrDown is the error of a tool that is out of order.
var ErrDown = errors.New("the order desk is down")

// busyText is what a tool answers when it is busy: the agent must call it again.
const busyText = "Error: busy. Try again."

// Faults are how often tools fail.
type Faults struct {
	Busy float64 // share of calls that are answered by a text that says to call again
	Down float64 // share of calls that are errors of Go: what they end is the framework's affair
}

// Desk is the order desk of a shop during one rollout. It has the data to itself. What the model does wrong, such as an
// order that does not exist, is told in the text of a result; an error is a failure of the desk.
type Desk struct {
	mu      sync.Mutex
	world   synthetic.World
	results []string // of calls that were no errors
	calls   int
	busy    int
	down    bool
	faults  Faults
	rng     *rand.Rand
}

// NewDesk opens the desk of the shop of a seed. Its faults are drawn from rng.
func NewDesk(seed uint64, faults Faults, rng *rand.Rand) *Desk {
	return &Desk{world: synthetic.Orders.New(seed), faults: faults, rng: rng}
}

// FindOrder returns the id of the order of a customer.
func (d *Desk) FindOrder(customer string) (string, error) {
	return d.call(FindOrder, "customer", customer)
}

// OrderStatus returns the status of an order.
func (d *Desk) OrderStatus(order string) (string, error) { return d.call(OrderStatus, "order", order) }

// CancelOrder cancels an order.
func (d *Desk) CancelOrder(order string) (string, error) { return d.call(CancelOrder, "order", order) }

// Call calls a tool by its name, for agents in other processes.
func (d *Desk) Call(tool, argument string) (string, error) {
	switch tool {
	case FindOrder:
		return d.FindOrder(argument)
	case OrderStatus:
		return d.OrderStatus(argument)
	case CancelOrder:
		return d.CancelOrder(argument)
	}
	return "Error: there is no tool of this name.", nil
}

// CallJSON is Call with arguments as the model wrote them. What is wrong with them is told to the model.
func (d *Desk) CallJSON(tool string, arguments []byte) (string, error) {
	var args struct{ Customer, Order string }
	if err := json.Unmarshal(arguments, &args); err != nil {
		return fmt.Sprintf("Error: %v.", err), nil
	}
	if tool == FindOrder {
		return d.Call(tool, args.Customer)
	}
	return d.Call(tool, args.Order)
}

func (d *Desk) call(tool, name, value string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	luck := d.rng.Float64()
	if luck < d.faults.Down {
		d.down = true
		return "", ErrDown
	}
	if luck < d.faults.Down+d.faults.Busy {
		d.busy++
		return busyText, nil
	}
	text, err := d.world.Call(tool, map[string]string{name: value})
	if err != nil {
		return "Error: " + err.Error() + ".", nil
	}
	d.results = append(d.results, text)
	return text, nil
}

// Faults returns how often the desk was busy, and whether a call has failed.
func (d *Desk) Faults() (busy int, down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy, d.down
}

// run is what was done at the desk, and with which answer the agent came to its end.
func (d *Desk) run(answer string, completed bool) *synthetic.Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &synthetic.Run{World: d.world, Results: slices.Clone(d.results), Summary: answer, Completed: completed}
}

// Scenarios returns tasks that the desk's tools can solve, about orders to train on, to validate with, and to measure
// the gain with.
func Scenarios(seed uint64) (train, val, test []mcp.Scenario) {
	other := func(s mcp.Scenario) bool {
		return slices.ContainsFunc(s.Want.Calls, func(c mcp.Call) bool { return c.Tool == "move_order" })
	}
	train, held := synthetic.Orders.Scenarios(seed, 2)
	train, held = slices.DeleteFunc(train, other), slices.DeleteFunc(held, other)
	return train, held[:len(held)/5], held[len(held)/5:]
}
