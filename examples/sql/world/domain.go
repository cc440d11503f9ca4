package world

import "strings"

// domain is a line of business with three tables: people, things, and events in which a person has to do with a thing.
// It says what they are called and how one speaks of them.
type domain struct {
	held   bool // for evaluation alone
	person entity
	thing  entity
	event  event
}

// entity is what people and things have in common.
type entity struct {
	table     string
	one, many string
	label     string   // column of the name
	group     string   // column of what divides them
	of        string   // those of a group: "customers from %s"
	groups    []string // values of that column of things; people have cities
	names     []string // of things
	price     string   // column of what a thing costs
}

// event is what happens.
type event struct {
	table     string
	one, many string
	on        string   // what joins them to things: orders "for" products
	date      string   // column of the day
	mode      string   // column of what divides events
	by        string   // those of a mode: "orders by %s"
	modes     []string // values of that column
	amount    string   // column of what was paid
	do        string   // what people do: "place"
	did       string   // "placed"
	pay       string   // "spend on orders"
	paid      string   // "spent%s on orders", with " the most" or another measure
}

func words(s string) []string { return strings.Fields(s) }

// cities are where people are from.
var cities = words(`Rome Oslo Paris Berlin Madrid Vienna Lisbon Dublin Athens Prague Warsaw Zurich`)

// people have a first and a last name.
var (
	firstNames = words(`Ann Bob Carl Dora Emma Finn Ida Max Nora Tom Lea Paul Rita Sam Tina Vera Ben Eva Leo Mia`)
	lastNames  = words(`Adams Baker Clark Davis Evans Fisher Green Harris Irwin Jones King Lewis Moore Nolan Parker Reed`)
)
