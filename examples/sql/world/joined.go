package world

import "fmt"

// eventsOfPeople asks for the number of events of the people from a city.
func (a *asker) eventsOfPeople() draft {
	city := pick(a.rng, a.cities)
	return draft{
		text:  fmt.Sprintf("How many %s did %s from %s %s?", a.event.many, a.person.many, city, a.event.do),
		rules: Cancelled | Deleted,
		query: func(missed Convention) string { return "SELECT COUNT(*) FROM " + a.fromCity(city, missed) },
	}
}

// sumOfPeople asks what people from a city paid.
func (a *asker) sumOfPeople() draft {
	city := pick(a.rng, a.cities)
	return draft{
		text:  fmt.Sprintf("How much did %s from %s %s in total, in euros?", a.person.many, city, a.event.pay),
		rules: Cents | Cancelled | Deleted,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s FROM %s", euros(a.total(), missed), a.fromCity(city, missed))
		},
	}
}

// peopleWithEvents asks for the number of people from a city who have an event of a mode.
func (a *asker) peopleWithEvents() draft {
	city := pick(a.rng, a.cities)
	mode, events := a.byMode()
	return draft{
		text:  fmt.Sprintf("How many different %s from %s %s %s?", a.person.many, city, a.event.did, events),
		rules: Cancelled | Deleted,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT COUNT(DISTINCT %s.%s) FROM %s AND %s", a.event.table, a.personRef,
				a.fromCity(city, missed), equals(a.event.table+"."+a.event.mode, mode))
		},
	}
}

// eventsOfThings asks for the number of events about the things of a group, and sumOfThings what was paid for them.
func (a *asker) eventsOfThings() draft {
	group := pick(a.rng, a.thing.groups)
	return draft{
		text:  fmt.Sprintf("How many %s %s %s were there?", a.event.many, a.event.on, fmt.Sprintf(a.thing.of, group)),
		rules: Cancelled,
		query: func(missed Convention) string { return "SELECT COUNT(*) FROM " + a.ofGroup(group, missed) },
	}
}

func (a *asker) sumOfThings() draft {
	group := pick(a.rng, a.thing.groups)
	return draft{
		text: fmt.Sprintf("How much was paid in total for %s %s %s, in euros?", a.event.many, a.event.on,
			fmt.Sprintf(a.thing.of, group)),
		rules: Cents | Cancelled,
		query: func(missed Convention) string {
			return fmt.Sprintf("SELECT %s FROM %s", euros(a.total(), missed), a.ofGroup(group, missed))
		},
	}
}

// total is what events add up to, in cents.
func (a *asker) total() string { return fmt.Sprintf("SUM(%s.%s)", a.event.table, a.event.amount) }

// fromCity and ofGroup are the events of the people from a city, and those about the things of a group.
func (a *asker) fromCity(city string, missed Convention) string {
	table := a.person.table + "."
	return a.ofPeople() + where(equals(table+a.person.group, city), a.live(table, missed),
		a.kept(a.event.table+".", missed))
}

func (a *asker) ofGroup(group string, missed Convention) string {
	return a.ofThings() + where(equals(a.thing.table+"."+a.thing.group, group), a.kept(a.event.table+".", missed))
}
