package frameworks

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/examples/agents/mcp/synthetic"
)

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
