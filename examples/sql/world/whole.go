package world

import "fmt"

// allPeople and allEvents ask how many there are.
func (a *asker) allPeople() draft {
	return draft{
		text:  fmt.Sprintf("How many %s are there?", a.person.many),
		table: a.person.table,
		rules: Deleted,
		query: func(missed Convention) string {
			return "SELECT COUNT(*) FROM " + a.person.table + where(a.live("", missed))
		},
	}
}

func (a *asker) allEvents() draft {
	return draft{
		text:  fmt.Sprintf("How many %s were there?", a.event.many),
		table: a.event.table,
		rules: Cancelled,
		query: func(missed Convention) string {
			return "SELECT COUNT(*) FROM " + a.event.table + where(a.kept("", missed))
		},
	}
}

// allMoney asks what was paid for all events.
func (a *asker) allMoney() draft {
	return draft{
		text:  fmt.Sprintf("How much was paid for %s in total, in euros?", a.event.many),
		table: a.event.table,
		rules: Cents | Cancelled,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s FROM %s", euros("SUM("+a.event.amount+")", missed), a.event.table) +
				where(a.kept("", missed))
		},
	}
}
