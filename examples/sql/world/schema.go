package world

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// schema is a database of a domain: which of several styles its columns have.
type schema struct {
	*domain
	personKey, thingKey, eventKey string // primary keys
	personRef, thingRef           string // what events call the first two
	deleted, cancelled            flag
	cities                        []string // that people of this database are from
}

// flag is a column that says that a row does not count.
type flag struct {
	column string
	hint   string // how the prompt shows its values
	typ    string
	counts string // the condition under which a row counts
	yes    string // value of a row that counts, as SQL
	no     string // value of one that does not; %s is a date
}

func number(column string) flag {
	return flag{column, "0/1", "INTEGER", " = 0", "0", "1"}
}

func day(column string) flag {
	return flag{column, "NULL/date", "TEXT", " IS NULL", "NULL", "'%s'"}
}

func state(column, yes, no string) flag {
	return flag{column, fmt.Sprintf("'%s'/'%s'", yes, no), "TEXT", fmt.Sprintf(" <> '%s'", no),
		"'" + yes + "'", "'" + no + "'"}
}

// flags by whether a domain is held out.
var (
	deletedFlags = map[bool][]flag{
		false: {number("deleted"), day("deleted_at"), state("account", "open", "deleted")},
		true:  {number("is_deleted"), day("deleted_on"), state("profile", "live", "deleted")},
	}
	cancelledFlags = map[bool][]flag{
		false: {number("cancelled"), day("cancelled_at"), state("status", "done", "cancelled")},
		true:  {number("is_cancelled"), day("cancelled_on"), state("state", "kept", "cancelled")},
	}
)

// newSchema draws the styles of a database.
func newSchema(d *domain, rng *rand.Rand) *schema {
	s := &schema{
		domain: d, deleted: pick(rng, deletedFlags[d.held]), cancelled: pick(rng, cancelledFlags[d.held]),
		personKey: "id", thingKey: "id", eventKey: "id",
	}
	suffix := "_id"
	if d.held {
		suffix = "_no"
	}
	s.personRef, s.thingRef = d.person.one+suffix, d.thing.one+suffix
	if rng.IntN(2) == 0 {
		s.personKey, s.thingKey, s.eventKey = s.personRef, s.thingRef, d.event.one+suffix
	}
	for _, i := range rng.Perm(len(cities))[:4] {
		s.cities = append(s.cities, cities[i])
	}
	return s
}

// names is the type of names and kinds: that a model writes them in capitals is not what it is to learn.
const names = "TEXT COLLATE NOCASE"

// column is one of a table: its name, its type, and what the prompt shows of its values, if anything.
type column struct{ name, typ, hint string }

// table is one of a schema.
type table struct {
	name    string
	columns []column
}

// tables returns those of people, of things and of events, in this order.
func (s *schema) tables() [3]table {
	p, t, e := &s.person, &s.thing, &s.event
	return [3]table{
		{p.table, []column{
			{s.personKey, "INTEGER PRIMARY KEY", ""}, {p.label, names, ""}, {p.group, names, ""},
			{s.deleted.column, s.deleted.typ, s.deleted.hint},
		}},
		{t.table, []column{
			{s.thingKey, "INTEGER PRIMARY KEY", ""}, {t.label, names, ""}, {t.group, names, ""}, {t.price, "INTEGER", ""},
		}},
		{e.table, []column{
			{s.eventKey, "INTEGER PRIMARY KEY", ""}, {s.personRef, "INTEGER", ""}, {s.thingRef, "INTEGER", ""},
			{e.date, "TEXT", "'2024-05-17'"}, {e.mode, names, ""}, {e.amount, "INTEGER", ""},
			{s.cancelled.column, s.cancelled.typ, s.cancelled.hint},
		}},
	}
}

// text is what the prompt shows of all tables, or of one of them, a line each:
//
//	customers(id, name, city, deleted 0/1)
func (s *schema) text(only string) string {
	var lines []string
	for _, t := range s.tables() {
		if only != "" && t.name != only {
			continue
		}
		var columns []string
		for _, c := range t.columns {
			columns = append(columns, strings.TrimSpace(c.name+" "+c.hint))
		}
		lines = append(lines, fmt.Sprintf("%s(%s)", t.name, strings.Join(columns, ", ")))
	}
	return strings.Join(lines, "\n")
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }
