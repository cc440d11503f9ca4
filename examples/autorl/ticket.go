package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// ticket turns a complaint into two fields.
var ticket = task{
	name: "ticket",
	text: "Turn a customer's complaint into a ticket with the fields product and urgency.",
	system: "Write a ticket for a complaint: its product, and high or low urgency.\n\n" +
		"The complaint \"The toaster burns bread. Come at once.\" becomes:\nproduct: toaster\nurgency: high\n\n" +
		"The complaint \"My car has a scratch. No rush.\" becomes:\nproduct: car\nurgency: low",
	rubric: "- There are exactly two lines, \"product: \" and \"urgency: \".\n- The product is that of the complaint, " +
		"and nothing else.\n- The urgency is high or low, as the complaint says.",
	tokens: 24,
	draw:   drawComplaint,
	rules:  []rule{{"by the rule (both fields right, nothing else)", ticketIsRight}},
	grade:  gradeTicket,
}

// What complaints are made of.
var (
	openings = []string{"My new", "The", "Your", "The second", "Our old", "The blue", "My daughter's", "The refurbished"}
	products = []string{
		"kettle", "blanket", "lamp", "printer", "keyboard", "laptop", "phone", "camera", "radio", "clock", "blender",
		"heater", "fan", "drill", "mower", "vacuum", "microwave", "freezer", "dishwasher", "oven", "bicycle", "scooter",
		"helmet", "tent", "backpack", "suitcase", "umbrella", "jacket", "watch", "mattress", "sofa", "desk", "chair",
		"bookshelf", "mirror", "carpet", "router", "speaker", "headset", "tablet", "monitor", "projector", "guitar",
		"piano", "violin", "telescope", "stroller", "thermostat", "doorbell", "ladder",
	}
	faults = []string{
		"stopped working after two days", "arrived with a broken part", "makes a loud noise", "does not switch on",
		"smells of burnt plastic", "was delivered in the wrong colour", "fell apart this week", "is missing its manual",
		"gets far too hot", "has a deep scratch", "came without screws", "keeps losing power",
		"is much smaller than in the picture", "leaks on the floor", "shows an error", "was already used",
	}
	urgent = []string{
		"I need a solution today", "Please help me at once", "This cannot wait", "It is an emergency",
		"Answer me immediately", "We need it by tonight", "This is extremely urgent", "Call me right now",
	}
	patient = []string{
		"There is no hurry", "Take your time", "It can wait until next month", "Answer whenever you like",
		"It is not urgent at all", "I have time, as I have another one", "Some day would be fine", "I am in no hurry",
	}
)

func drawComplaint(rng *rand.Rand) string {
	when := pick(rng, [][]string{urgent, patient})
	return fmt.Sprintf("%s %s %s. %s.", pick(rng, openings), pick(rng, products), pick(rng, faults), pick(rng, when))
}

// complaintOf reads a complaint: its product, and high or low.
func complaintOf(input string) (product, urgency string) {
	for _, p := range products {
		if strings.Contains(input, " "+p+" ") {
			product = p
		}
	}
	for _, phrase := range urgent {
		if strings.HasSuffix(input, ". "+phrase+".") {
			return product, "high"
		}
	}
	return product, "low"
}

// ticketIsRight tells whether a reply is the two lines, both right, and nothing else.
func ticketIsRight(input, reply string) bool {
	product, urgency := complaintOf(input)
	lines := strings.Split(strings.TrimSpace(reply), "\n")
	return len(lines) == 2 && strings.TrimSpace(lines[0]) == "product: "+product &&
		strings.TrimSpace(lines[1]) == "urgency: "+urgency
}

func gradeTicket(input, reply string) (float64, string) {
	product, urgency := complaintOf(input)
	lines := strings.Split(strings.TrimSpace(reply), "\n")
	gotProduct, hasProduct := fieldOf(lines, "product")
	gotUrgency, hasUrgency := fieldOf(lines, "urgency")
	named := when(gotProduct == product)
	if named == 0 && strings.Contains(gotProduct, product) {
		named = 0.4
	}
	return total(
		part{"a line for the product", 0.1, when(hasProduct)},
		part{"a line for the urgency", 0.1, when(hasUrgency)},
		part{"the name of the product alone", 0.2, named},
		part{"high or low", 0.05, when(gotUrgency == "high" || gotUrgency == "low")},
		part{"the urgency that the complaint has", 0.3, when(gotUrgency == urgency)},
		part{"an end after two lines", 0.25, when(hasProduct && hasUrgency && len(lines) == 2)},
	)
}

// fieldOf returns what the first line that begins with a name and a colon has behind it.
func fieldOf(lines []string, name string) (value string, ok bool) {
	for _, line := range lines {
		if value, ok = strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
