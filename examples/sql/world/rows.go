package world

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// rows are what a database holds of people and things, as far as questions name them.
type rows struct {
	people, things []string
}

// Of ten people and of ten events, so many do not count.
const (
	deletedOfTen   = 3
	cancelledOfTen = 3
)

// fill returns the statements that make a database: its tables, and rows drawn at random. How many people and events
// there are differs from one database to the next, so that no count is likelier than others.
func (s *schema) fill(rng *rand.Rand) ([]string, *rows) {
	var statements []string
	tables := s.tables()
	for _, t := range tables {
		var columns []string
		for _, c := range t.columns {
			columns = append(columns, c.name+" "+c.typ)
		}
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s (%s)", t.name, strings.Join(columns, ", ")))
	}
	insert := func(t table, values []string) {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES %s", t.name, strings.Join(values, ", ")))
	}
	out := &rows{things: s.thing.names}
	var people, things, events []string
	count := 60 + rng.IntN(100)
	for i, at := range rng.Perm(len(firstNames) * len(lastNames))[:count] {
		name := firstNames[at%len(firstNames)] + " " + lastNames[at/len(firstNames)]
		out.people = append(out.people, name)
		people = append(people, fmt.Sprintf("(%d, '%s', '%s', %s)", i+1, name, pick(rng, s.cities),
			s.deleted.value(rng, deletedOfTen)))
	}
	for i, name := range s.thing.names {
		things = append(things, fmt.Sprintf("(%d, '%s', '%s', %d)", i+1, name, s.thing.groups[i%len(s.thing.groups)],
			cents(rng)))
	}
	for i := range 4*count + rng.IntN(3*count) {
		events = append(events, fmt.Sprintf("(%d, %d, %d, '%s', '%s', %d, %s)", i+1, 1+rng.IntN(count),
			1+rng.IntN(len(things)), date(rng), pick(rng, s.event.modes), cents(rng),
			s.cancelled.value(rng, cancelledOfTen)))
	}
	insert(tables[0], people)
	insert(tables[1], things)
	insert(tables[2], events)
	return statements, out
}

// value is that of a row that does not count in some of ten cases.
func (f *flag) value(rng *rand.Rand, ofTen int) string {
	if rng.IntN(10) >= ofTen {
		return f.yes
	}
	if strings.Contains(f.no, "%s") {
		return fmt.Sprintf(f.no, date(rng))
	}
	return f.no
}

// cents is an amount of money of 5 to 300 euros, small ones being more frequent.
func cents(rng *rand.Rand) int { return 500 + int(29500*rng.Float64()*rng.Float64()) }

// date is a day of the years that questions are about.
func date(rng *rand.Rand) string {
	return fmt.Sprintf("%d-%02d-%02d", firstYear+rng.IntN(2), 1+rng.IntN(12), 1+rng.IntN(28))
}

// firstYear is the first of two years.
const firstYear = 2023
