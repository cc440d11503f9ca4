package world

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The levels of difficulty.
const (
	// Whole questions are about all rows of a table, the only one that they show: for models that know no SQL. Those held
	// out are about other databases of the same lines of business.
	Whole = 0
	// Single questions need one table, with a filter or an aggregate.
	Single = 1
	// Joined questions need a join.
	Joined = 2
	// Grouped questions need a join and a range of dates, groups, an order or a condition on groups.
	Grouped = 3
)

// draft is a question before its answers are known.
type draft struct {
	text string
	// table is the only one that is shown; all are if it is empty.
	table string
	// rules are the conventions that matter.
	rules Convention
	// query is the right one, but for the conventions that are missed.
	query func(missed Convention) string
	// names are what a question that asks for a name chooses among; nil if it asks for a number.
	names []string
}

// kinds are the kinds of questions of each level.
var kinds = map[int][]struct {
	name  string
	draft func(*asker) draft
}{
	Whole: {{"all people", (*asker).allPeople}, {"all events", (*asker).allEvents}, {"all money", (*asker).allMoney}},
	Single: {
		{"people", (*asker).people}, {"events", (*asker).events}, {"sum", (*asker).sum},
		{"mean", (*asker).mean}, {"price", (*asker).price},
	},
	Joined: {
		{"events of people", (*asker).eventsOfPeople}, {"sum of people", (*asker).sumOfPeople},
		{"events of things", (*asker).eventsOfThings}, {"sum of things", (*asker).sumOfThings},
		{"people with events", (*asker).peopleWithEvents},
	},
	Grouped: {
		{"top person", (*asker).topPerson}, {"range of dates", (*asker).dateRange}, {"busy people", (*asker).busyPeople},
		{"big spenders", (*asker).bigSpenders}, {"top thing", (*asker).topThing},
	},
}

// asker writes questions about a database.
type asker struct {
	*schema
	rows *rows
	rng  *rand.Rand
}

// where joins the conditions that are not empty.
func where(conditions ...string) string {
	var out []string
	for _, c := range conditions {
		if c != "" {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(out, " AND ")
}

// equals is the condition that a column has a text.
func equals(column, text string) string { return fmt.Sprintf("%s = '%s'", column, text) }

// live is the condition that a person counts, unless the rule is missed; table is empty or ends in a point.
func (a *asker) live(table string, missed Convention) string {
	if missed.has(Deleted) {
		return ""
	}
	return table + a.deleted.column + a.deleted.counts
}

// kept is the condition that an event counts, unless the rule is missed.
func (a *asker) kept(table string, missed Convention) string {
	if missed.has(Cancelled) {
		return ""
	}
	return table + a.cancelled.column + a.cancelled.counts
}

// euros is an amount of cents in euros, unless the rule is missed.
func euros(cents string, missed Convention) string {
	if missed.has(Cents) {
		return cents
	}
	return cents + " / 100.0"
}

// ofPeople and ofThings are events joined with those they are about.
func (a *asker) ofPeople() string {
	p, e := a.person.table, a.event.table
	return fmt.Sprintf("%s JOIN %s ON %s.%s = %s.%s", e, p, p, a.personKey, e, a.personRef)
}

func (a *asker) ofThings() string {
	t, e := a.thing.table, a.event.table
	return fmt.Sprintf("%s JOIN %s ON %s.%s = %s.%s", e, t, t, a.thingKey, e, a.thingRef)
}
