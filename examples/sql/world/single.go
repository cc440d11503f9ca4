package world

import (
	"fmt"
	"strings"
)

// people asks for the number of those from a city.
func (a *asker) people() draft {
	city := pick(a.rng, a.cities)
	return draft{
		text:  fmt.Sprintf("How many %s are from %s?", a.person.many, city),
		rules: Deleted,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT COUNT(*) FROM %s", a.person.table) +
				where(equals(a.person.group, city), a.live("", missed))
		},
	}
}

// byMode is the start of a question about events of a mode: the mode, and what such events are called.
func (a *asker) byMode() (mode, events string) {
	mode = pick(a.rng, a.event.modes)
	return mode, fmt.Sprintf(a.event.by, mode)
}

// events asks for the number of those of a mode.
func (a *asker) events() draft {
	mode, events := a.byMode()
	return draft{
		text:  fmt.Sprintf("How many %s were there?", events),
		rules: Cancelled,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT COUNT(*) FROM %s", a.event.table) +
				where(equals(a.event.mode, mode), a.kept("", missed))
		},
	}
}

// sum asks what events of a mode add up to, and mean what they cost on average.
func (a *asker) sum() draft  { return a.aggregate("SUM", "in total") }
func (a *asker) mean() draft { return a.aggregate("AVG", "on average") }

func (a *asker) aggregate(function, how string) draft {
	mode, events := a.byMode()
	return draft{
		text:  fmt.Sprintf("How much was paid for %s %s, in euros?", events, how),
		rules: Cents | Cancelled,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s FROM %s", euros(fmt.Sprintf("%s(%s)", function, a.event.amount), missed),
				a.event.table) + where(equals(a.event.mode, mode), a.kept("", missed))
		},
	}
}

// price asks for the highest, the lowest or the average price of the things of a group.
func (a *asker) price() draft {
	function := pick(a.rng, [][2]string{{"MAX", "highest"}, {"MIN", "lowest"}, {"AVG", "average"}})
	group := pick(a.rng, a.thing.groups)
	return draft{
		text: fmt.Sprintf("What is the %s %s of the %s, in euros?", function[1],
			strings.ReplaceAll(a.thing.price, "_", " "), fmt.Sprintf(a.thing.of, group)),
		rules: Cents,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s FROM %s", euros(fmt.Sprintf("%s(%s)", function[0], a.thing.price), missed),
				a.thing.table) + where(equals(a.thing.group, group))
		},
	}
}
