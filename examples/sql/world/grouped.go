package world

import (
	"fmt"
	"time"
)

// topPerson asks who paid the most in a period.
func (a *asker) topPerson() draft {
	during, in := a.period()
	return draft{
		text:  fmt.Sprintf("Which %s %s %s?", a.person.one, fmt.Sprintf(a.event.paid, " the most"), during),
		rules: Cancelled | Deleted,
		names: a.rows.people,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s.%s FROM %s", a.person.table, a.person.label, a.ofPeople()) +
				where(in, a.live(a.person.table+".", missed), a.kept(a.event.table+".", missed)) +
				fmt.Sprintf("%s ORDER BY %s DESC LIMIT 1", a.byPerson(), a.total())
		},
	}
}

// topThing asks what was paid for the thing for which the most was paid in a period.
func (a *asker) topThing() draft {
	during, in := a.period()
	return draft{
		text: fmt.Sprintf("Take the %s for whose %s the most was paid %s: how much was that, in euros?", a.thing.one,
			a.event.many, during),
		rules: Cents | Cancelled,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s FROM %s", euros(a.total(), missed), a.ofThings()) +
				where(in, a.kept(a.event.table+".", missed)) +
				fmt.Sprintf(" GROUP BY %s.%s ORDER BY %s DESC LIMIT 1", a.thing.table, a.thingKey, a.total())
		},
	}
}

// dateRange asks what people from a city paid in a period.
func (a *asker) dateRange() draft {
	city := pick(a.rng, a.cities)
	during, in := a.period()
	return draft{
		text:  fmt.Sprintf("How much did %s from %s %s %s, in euros?", a.person.many, city, a.event.pay, during),
		rules: Cents | Cancelled | Deleted,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s FROM %s AND %s", euros(a.total(), missed), a.fromCity(city, missed), in)
		},
	}
}

// busyPeople asks how many people have some events of a mode at least, and bigSpenders how many paid more than some
// euros.
func (a *asker) busyPeople() draft {
	mode, events := a.byMode()
	least := 2 + a.rng.IntN(3)
	return draft{
		text:  fmt.Sprintf("How many %s %s at least %d %s?", a.person.many, a.event.did, least, events),
		rules: Cancelled | Deleted,
		query: func(missed Convention) string {
			return a.countPeople(missed, equals(a.event.table+"."+a.event.mode, mode), fmt.Sprintf("COUNT(*) >= %d", least))
		},
	}
}

func (a *asker) bigSpenders() draft {
	year, in := a.year()
	least := 50 * (2 + a.rng.IntN(8))
	return draft{
		text: fmt.Sprintf("How many %s %s in %d?", a.person.many,
			fmt.Sprintf(a.event.paid, fmt.Sprintf(" more than %d euros", least)), year),
		rules: Cents | Cancelled | Deleted,
		query: func(missed Convention) string {
			return a.countPeople(missed, in, fmt.Sprintf("%s > %d", euros(a.total(), missed), least))
		},
	}
}

// countPeople counts the people whose events, of those that a condition chooses, have something in common.
func (a *asker) countPeople(missed Convention, in, having string) string {
	return fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM %s", a.ofPeople()) +
		where(in, a.live(a.person.table+".", missed), a.kept(a.event.table+".", missed)) +
		fmt.Sprintf("%s HAVING %s)", a.byPerson(), having)
}

// byPerson groups events by person.
func (a *asker) byPerson() string { return fmt.Sprintf(" GROUP BY %s.%s", a.person.table, a.personKey) }

// year draws a year, and the condition that events are of it.
func (a *asker) year() (year int, in string) {
	year = firstYear + a.rng.IntN(2)
	return year, fmt.Sprintf("%s.%s LIKE '%d%%'", a.event.table, a.event.date, year)
}

// period draws some months of a year, and the condition that events are of them.
func (a *asker) period() (during, in string) {
	year, length := firstYear+a.rng.IntN(2), 4+a.rng.IntN(4)
	month := 1 + a.rng.IntN(12-length)
	first := fmt.Sprintf("%d-%02d-01", year, month)
	last := time.Date(year, time.Month(month+length), 0, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	return fmt.Sprintf("from %s to %s", first, last),
		fmt.Sprintf("%s.%s BETWEEN '%s' AND '%s'", a.event.table, a.event.date, first, last)
}
