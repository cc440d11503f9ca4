package synthetic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/goart-dev/art/examples/agents/mcp"
)

// Orders is a shop. A customer has one order.
var Orders = Domain{Name: "orders", New: func(seed uint64) World { return newOrders(seed) }, scenarios: orderScenarios}

type order struct{ id, customer, status, city string }

type orders struct{ list []order }

const numOrders = 180

var (
	firstNames = strings.Fields("Ann Bob Carl Dora Emma Finn Gus Ida Jan Kim Leo Max Nora Otto Pia Rosa Sam Tom")
	lastNames  = strings.Fields("Bell Cook Dale Ford Hill King Lane Moor Rose West")
	statuses   = strings.Fields("open packed shipped delivered")
	cities     = strings.Fields("Paris Rome Berlin London Madrid Oslo Tokyo Lima Cairo Delhi")
)

// newOrders makes the orders of a seed: ids have four digits, and each differs.
func newOrders(seed uint64) *orders {
	rng := rand.New(rand.NewPCG(seed, 0x0d3))
	ids, people := ids(rng, numOrders, 1000, 9999), rng.Perm(len(firstNames)*len(lastNames))
	w := &orders{}
	for i := range numOrders {
		first, last := firstNames[people[i]%len(firstNames)], lastNames[people[i]/len(firstNames)]
		w.list = append(w.list, order{
			id: ids[i], customer: first + " " + last,
			status: statuses[rng.IntN(len(statuses))], city: cities[rng.IntN(len(cities))],
		})
	}
	return w
}

func (w *orders) Tools() []Tool {
	return []Tool{
		{"order_status", "Status of an order.", []string{"order"}},
		{"find_order", "Find the order of a customer.", []string{"customer"}},
		{"cancel_order", "Cancel an order.", []string{"order"}},
		{"move_order", "Move an order to a city.", []string{"order", "city"}},
	}
}

func (w *orders) Call(tool string, args map[string]string) (string, error) {
	if tool == "find_order" {
		i := slices.IndexFunc(w.list, func(o order) bool { return strings.EqualFold(o.customer, args["customer"]) })
		if i < 0 {
			return "", fmt.Errorf("there is no customer %.40s", args["customer"])
		}
		return w.list[i].id, nil
	}
	i := slices.IndexFunc(w.list, func(o order) bool { return o.id == args["order"] })
	if i < 0 {
		return "", fmt.Errorf("there is no order %.40s", args["order"])
	}
	switch o := &w.list[i]; tool {
	case "cancel_order":
		o.status = "cancelled"
		return "cancelled", nil
	case "move_order":
		o.city = args["city"]
		return "moved to " + o.city, nil
	default:
		return o.status, nil
	}
}

func (w *orders) Equal(other World) bool {
	o, ok := other.(*orders)
	return ok && slices.Equal(w.list, o.list)
}

// How people ask. The built-in model understands some of it always, some at times and some never, so that it has
// something to learn.
var (
	statusForms = []string{
		"Order status of %s.", "Order status, %s.", "The order status of %s?", "I want the order status of %s.",
		"What is the order status of %s?",
	}
	findForms = []string{
		"Find the order of %s.", "Find the order from %s.", "Find the customer %s.", "Which order is of %s?",
	}
	cancelForms = []string{"Cancel order %s.", "Order %s must be cancelled."}
	moveForms   = []string{"Move order %s to %s.", "Move %s to %s.", "Move order %s from here to %s."}
)

// orderScenarios asks everything about each order.
func orderScenarios(seed uint64, rng *rand.Rand) (lists [][]mcp.Scenario) {
	for _, o := range newOrders(seed).list {
		city := cities[rng.IntN(len(cities))]
		if city == o.city {
			city = "Vienna"
		}
		find := mcp.Call{Tool: "find_order", Args: map[string]string{"customer": o.customer}}
		status := mcp.Call{Tool: "order_status", Args: map[string]string{"order": o.id}}
		cancel := mcp.Call{Tool: "cancel_order", Args: map[string]string{"order": o.id}}
		move := mcp.Call{Tool: "move_order", Args: map[string]string{"order": o.id, "city": city}}
		ask := func(forms []string, args ...any) string { return fmt.Sprintf(forms[rng.IntN(len(forms))], args...) }
		lists = append(lists, []mcp.Scenario{
			scenario(1, ask(statusForms, o.id), o.status, status),
			scenario(1, ask(findForms, o.customer), o.id, find),
			scenario(1, ask(cancelForms, o.id), "", cancel),
			scenario(1, ask(moveForms, o.id, city), "", move),
			scenario(2, "Find the order of "+o.customer+" and cancel it.", "", find, cancel),
			scenario(2, "Find the order of "+o.customer+". What is its order status?", o.status, find, status),
		})
	}
	return lists
}

func scenario(difficulty int, task, answer string, calls ...mcp.Call) mcp.Scenario {
	return mcp.Scenario{Task: task, Difficulty: difficulty, Want: &mcp.Want{Calls: calls, Answer: answer}}
}
