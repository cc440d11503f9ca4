package synthetic

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/goart-dev/art/examples/agents/mcp"
)

// Calendar has events on days. A title is there once.
var Calendar = Domain{
	Name: "calendar", New: func(seed uint64) World { return newCalendar(seed) }, scenarios: calendarScenarios,
}

type event struct{ id, title, day, time string }

type calendar struct{ list []event }

const numEvents = 150

var (
	days     = strings.Fields("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
	partners = strings.Fields("Ann Bob Carl Dora Emma Finn Gus Ida Jan Kim Leo Max Nora Otto Pia")
	kinds    = strings.Fields("lunch call talk walk class game tour visit party dinner")
)

func newCalendar(seed uint64) *calendar {
	rng := rand.New(rand.NewPCG(seed, 0xca1))
	ids, titles := ids(rng, numEvents, 100, 999), rng.Perm(len(kinds)*len(partners))
	w := &calendar{}
	for i := range numEvents {
		w.list = append(w.list, event{
			id:    ids[i],
			title: kinds[titles[i]%len(kinds)] + " with " + partners[titles[i]/len(kinds)],
			day:   days[rng.IntN(len(days))], time: fmt.Sprintf("%d:00", 8+rng.IntN(12)),
		})
	}
	return w
}

func (w *calendar) Tools() []Tool {
	return []Tool{
		{"event_time", "Time of an event.", []string{"event"}},
		{"find_event", "Find an event by its title.", []string{"title"}},
		{"remove_event", "Remove an event.", []string{"event"}},
		{"move_event", "Move an event to a day.", []string{"event", "day"}},
	}
}

func (w *calendar) Call(tool string, args map[string]string) (string, error) {
	key, by := args["event"], func(e event) string { return e.id }
	if tool == "find_event" {
		key, by = args["title"], func(e event) string { return e.title }
	}
	i := slices.IndexFunc(w.list, func(e event) bool { return strings.EqualFold(by(e), key) })
	if i < 0 {
		return "", fmt.Errorf("there is no event %.40s", key)
	}
	switch e := &w.list[i]; tool {
	case "find_event":
		return e.id, nil
	case "remove_event":
		w.list = slices.Delete(w.list, i, i+1)
		return "removed", nil
	case "move_event":
		if !slices.Contains(days, args["day"]) {
			return "", errors.New("the day must be Monday to Sunday")
		}
		e.day = args["day"]
		return "moved to " + e.day, nil
	default:
		return e.time, nil
	}
}

func (w *calendar) Equal(other World) bool {
	o, ok := other.(*calendar)
	return ok && slices.Equal(w.list, o.list)
}

// calendarScenarios asks everything about each event.
func calendarScenarios(seed uint64, rng *rand.Rand) (lists [][]mcp.Scenario) {
	for _, e := range newCalendar(seed).list {
		day := days[(slices.Index(days, e.day)+1+rng.IntN(len(days)-1))%len(days)]
		find := mcp.Call{Tool: "find_event", Args: map[string]string{"title": e.title}}
		time := mcp.Call{Tool: "event_time", Args: map[string]string{"event": e.id}}
		remove := mcp.Call{Tool: "remove_event", Args: map[string]string{"event": e.id}}
		move := mcp.Call{Tool: "move_event", Args: map[string]string{"event": e.id, "day": day}}
		lists = append(lists, []mcp.Scenario{
			scenario(1, "What is the event time of "+e.id+"?", e.time, time),
			scenario(1, "Find the event "+e.title+".", e.id, find),
			scenario(1, "Remove event "+e.id+".", "", remove),
			scenario(1, "Move event "+e.id+" to "+day+".", "", move),
			scenario(2, "Find the event "+e.title+" and remove it.", "", find, remove),
			scenario(2, "Find the event "+e.title+". What is its event time?", e.time, find, time),
		})
	}
	return lists
}
