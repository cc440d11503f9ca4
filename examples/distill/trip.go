package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/goart-dev/art"
)

// trip is a scenario: a request and what it asks for.
type trip struct {
	request, from, to, month string
}

// shown is the teacher's prompt: what to do, and how it is done. The student never sees it.
var shown = []art.Message{
	art.System("Turn each request for a trip into JSON with the fields from, to and month."),
	art.User("I want to travel from Lisbon to Vienna in March."),
	art.Assistant(`{"from":"Lisbon","to":"Vienna","month":"March"}`),
	art.User("We go to Dublin in December. We live in Prague."),
	art.Assistant(`{"from":"Prague","to":"Dublin","month":"December"}`),
	art.User("In June, get me to Cairo; I start in Tunis."),
	art.Assistant(`{"from":"Tunis","to":"Cairo","month":"June"}`),
}

// What requests are made of.
var (
	cities = []string{
		"Oslo", "Rome", "Madrid", "Berlin", "Paris", "London", "Athens", "Warsaw", "Helsinki", "Brussels", "Zurich", "Munich",
		"Milan", "Naples", "Seville", "Porto", "Lyon", "Geneva", "Hamburg", "Boston", "Chicago", "Toronto", "Tokyo", "Seoul",
		"Sydney", "Delhi", "Lima", "Havana", "Nairobi", "Moscow", "Budapest", "Istanbul",
	}
	months = []string{
		"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
		"December",
	}
	wordings = []string{
		"I want to travel from {from} to {to} in {month}.",
		"Please book a trip to {to} from {from}, some time in {month}.",
		"In {month} we move from {from} to {to}.",
		"We go to {to} in {month}. We live in {from}.",
		"In {month}, get me to {to}; I start in {from}.",
		"My sister lives in {from} and will visit me in {to} in {month}.",
		"Is there a train from {from}? I have to be in {to} in {month}.",
		"{from} to {to}, {month}, one person.",
	}
)

// trips returns n requests, all different: to train on, or held out. Pairs of cities of which one kind asks are never
// in the other.
func trips(n int, held bool, seed uint64) []trip {
	stream := uint64(0)
	if held {
		stream = 1
	}
	rng, seen := rand.New(rand.NewPCG(seed, stream)), map[string]bool{}
	list := make([]trip, 0, n)
	for len(list) < n {
		from, to := rng.IntN(len(cities)), rng.IntN(len(cities))
		if from == to || ((from+to)%4 == 0) != held {
			continue
		}
		t := trip{from: cities[from], to: cities[to], month: months[rng.IntN(len(months))]}
		t.request = strings.NewReplacer("{from}", t.from, "{to}", t.to, "{month}", t.month).Replace(
			wordings[rng.IntN(len(wordings))])
		if !seen[t.request] {
			seen[t.request] = true
			list = append(list, t)
		}
	}
	return list
}

func (t trip) reply() string {
	return fmt.Sprintf(`{"from":%q,"to":%q,"month":%q}`, t.from, t.to, t.month)
}

// answer is what a reply says. A field that is missing or null is nil.
type answer struct {
	From  *string `json:"from"`
	To    *string `json:"to"`
	Month *string `json:"month"`
}

// grade checks a reply: solved when it is one JSON object with the three fields, all right. The reward counts the
// fields that are right, so that a reply with two of them is better than one with none.
func (t trip) grade(reply string) (reward float64, solved bool) {
	var a answer
	d := json.NewDecoder(strings.NewReader(reply))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil || strings.TrimSpace(reply[d.InputOffset():]) != "" {
		return 0, false
	}
	reward = 0.1 // for the form
	if a.From != nil && *a.From == t.from {
		reward += 0.3
	}
	if a.To != nil && *a.To == t.to {
		reward += 0.3
	}
	if a.Month != nil && *a.Month == t.month {
		reward += 0.3
	}
	return reward, reward > 0.99
}
