package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/auto"
)

// grammar puts a sentence with a mistake, and the sentence without it, into tags.
var grammar = task{
	name:   "grammar",
	text:   "Correct the grammar of a sentence. Give the original and the corrected sentence in tags.",
	system: "Give the original and the corrected sentence in tags.",
	examples: []auto.Example{
		{Input: "He go home.", Reply: "<original>He go home.</original><corrected>He goes home.</corrected>"},
		{Input: "I has a house.", Reply: "<original>I has a house.</original><corrected>I have a house.</corrected>"},
		{Input: "We was late.", Reply: "<original>We was late.</original><corrected>We were late.</corrected>"},
	},
	rubric: "- The whole reply is <original>...</original><corrected>...</corrected>.\n- The original is copied to the " +
		"letter.\n- The corrected sentence has no mistake, and is otherwise the same.",
	tokens: 48,
	draw:   drawSentence,
	rules: []rule{
		{"by the rule (tags, original copied, something corrected)", tagsAreRight},
		{"by the rule, and the sentence is corrected", sentenceIsRight},
	},
	grade: gradeTags,
}

type mistake struct{ wrong, right string }

// What sentences are made of.
var (
	subjects = []string{
		"She", "He", "Maria", "Tom", "My brother", "The teacher", "Our neighbour", "The doctor", "My aunt", "Peter",
		"The old man", "Her friend", "The student", "Anna", "His boss", "The child",
	}
	mistakes = []mistake{
		{"walk to the market", "walks to the market"}, {"drink cold coffee", "drinks cold coffee"},
		{"have a red car", "has a red car"}, {"do the shopping", "does the shopping"},
		{"read the newspaper", "reads the newspaper"}, {"play chess", "plays chess"},
		{"live near the river", "lives near the river"}, {"speak French", "speaks French"},
		{"work in a bank", "works in a bank"}, {"sing old songs", "sings old songs"},
		{"don't like soup", "doesn't like soup"}, {"don't drive fast", "doesn't drive fast"},
		{"eats a apple", "eats an apple"}, {"carries a umbrella", "carries an umbrella"},
		{"writes a email", "writes an email"}, {"buys two book", "buys two books"},
		{"feeds three dog", "feeds three dogs"}, {"cooks many egg", "cooks many eggs"},
		{"are very tired", "is very tired"}, {"are at home", "is at home"},
		{"is sleep on the sofa", "is sleeping on the sofa"}, {"is cook dinner", "is cooking dinner"},
		{"can swims well", "can swim well"}, {"must goes to school", "must go to school"},
	}
	endings = []string{
		"every morning", "on Sundays", "after work", "in winter", "at night", "these days", "before lunch", "in summer",
		"with pleasure", "on most days", "during the week", "when it rains",
	}
)

func drawSentence(rng *rand.Rand) string {
	return fmt.Sprintf("%s %s %s.", pick(rng, subjects), pick(rng, mistakes).wrong, pick(rng, endings))
}

func correctedOf(input string) string {
	for _, m := range mistakes {
		if strings.Contains(input, " "+m.wrong+" ") {
			return strings.Replace(input, " "+m.wrong+" ", " "+m.right+" ", 1)
		}
	}
	return input
}

// tagsOf reads a reply that is nothing but both tags.
func tagsOf(reply string) (original, corrected string, ok bool) {
	rest, begins := strings.CutPrefix(strings.TrimSpace(reply), "<original>")
	rest, ends := strings.CutSuffix(rest, "</corrected>")
	original, corrected, ok = strings.Cut(rest, "</original><corrected>")
	return original, corrected, ok && begins && ends && !strings.ContainsAny(original+corrected, "<>")
}

// tagsAreRight tells whether a reply is nothing but both tags, with the input copied to the letter in the first and
// something in the second.
func tagsAreRight(input, reply string) bool {
	original, corrected, ok := tagsOf(reply)
	return ok && original == input && strings.TrimSpace(corrected) != ""
}

// sentenceIsRight asks for the right sentence in the second tag as well.
func sentenceIsRight(input, reply string) bool {
	_, corrected, _ := tagsOf(reply)
	return tagsAreRight(input, reply) && corrected == correctedOf(input)
}

func gradeTags(input, reply string) (float64, string) {
	reply = strings.TrimSpace(reply)
	original, hasOriginal := between(reply, "<original>", "</original>")
	corrected, hasCorrected := between(reply, "<corrected>", "</corrected>")
	_, _, alone := tagsOf(reply)
	return total(
		part{"<original> at its beginning", 0.1, when(strings.HasPrefix(reply, "<original>"))},
		part{"the tags of the original", 0.1, when(hasOriginal)},
		part{"the tags of the corrected sentence", 0.1, when(hasCorrected)},
		part{"a copy of the original", 0.25, alike(original, input)},
		part{"the corrected sentence", 0.25, alike(corrected, correctedOf(input))},
		part{"an end after both tags", 0.2, when(alone)},
	)
}

// alike is 1 for equal texts, and at most 0.6 for others, by the words that they share.
func alike(got, want string) float64 {
	if got == want {
		return 1
	}
	return 0.6 * agents.Similarity(got, want)
}

func between(text, begin, end string) (inside string, ok bool) {
	if _, text, ok = strings.Cut(text, begin); !ok {
		return "", false
	}
	inside, _, ok = strings.Cut(text, end)
	return inside, ok
}

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
