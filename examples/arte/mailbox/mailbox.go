// Package mailbox makes the mail of an office, and questions about it that one mail each answers.
//
// People write about the items of projects: what the budget of the river project is, for which month. A thread is about
// one item of one project. Its messages have the same people, the same subject and nearly the same words; they differ
// in the date and the amount. Requests and replies repeat the words without the amount. Everything is a function of the
// seed.
package mailbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Message is a mail.
type Message struct {
	ID       string
	From, To string
	Date     string // 2024-03-14
	Subject  string
	Body     string
}

// Question asks for what one message says.
type Question struct {
	Text   string
	Answer string
	Source string // id of the message
	// Keywords find the message, perhaps among others. From, After and Before are set for the level whose words find a
	// whole thread: with them the search finds the message alone.
	Keywords            string
	From, After, Before string
}

// Box is the mail, and the questions of one level.
type Box struct {
	Messages []Message // the oldest first
	// Train and Held are questions to train on, and those to measure with. No thread has questions in both.
	Train, Held []Question
}

// The levels of difficulty.
const (
	// Named questions give words that one message has.
	Named = 1
	// Discussed questions give words that the right message has, and also a request before it, a reply after it or both,
	// which do not tell the answer.
	Discussed = 2
	// Dated questions give words that a whole thread has, and the sender and the month of the right message.
	Dated = 3
)

// heldOut is one thread of how many has its questions held out.
const heldOut = 4

// New makes a mailbox of at least n messages with the questions of a level.
func New(n, level int, seed uint64) *Box {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1)), level: level}
	threads := g.rng.Perm(len(projects) * len(items))
	for i, at := range threads {
		g.thread(projects[at/len(items)], items[at%len(items)], i%heldOut == 0)
	}
	for len(g.mail) < n {
		m := Message{From: g.person(), To: g.person(), Date: date(g.rng.IntN(12), 1+g.rng.IntN(28)), Subject: "hello"}
		m.Body = pick(g.rng, smallTalk)
		g.add(m)
	}
	b := &Box{Messages: g.mail, Train: g.train, Held: g.held}
	low := 1000
	for 9*low < len(g.mail) {
		low *= 10
	}
	ids := g.rng.Perm(9 * low)
	for i := range b.Messages {
		b.Messages[i].ID = strconv.Itoa(low + ids[i])
	}
	for _, list := range [][]Question{b.Train, b.Held} {
		for i := range list {
			at, _ := strconv.Atoi(list[i].Source)
			list[i].Source = b.Messages[at].ID
		}
		g.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	slices.SortStableFunc(b.Messages, func(a, c Message) int { return strings.Compare(a.Date, c.Date) })
	return b
}

// generator collects what a box consists of. Ids are given at the end: until then the index of a message stands for it.
type generator struct {
	rng         *rand.Rand
	level       int
	mail        []Message
	train, held []Question
}

// thread adds what two people wrote about an item in some months. In every second thread the texts name the month.
func (g *generator) thread(project, item string, held bool) {
	named := g.rng.IntN(2) == 0
	pair := [2]string{g.person(), g.person()}
	for pair[0] == pair[1] {
		pair[1] = g.person()
	}
	amounts := g.rng.Perm(900)
	for i, month := range g.rng.Perm(12)[:5+g.rng.IntN(3)] {
		day, about := 2+g.rng.IntN(26), "he "+project+" "+item
		if named {
			about += " for " + months[month]
		}
		m := Message{From: pair[i%2], To: pair[1-i%2], Date: date(month, day), Subject: project + " " + item}
		amount := strconv.Itoa(100 + amounts[i])
		m.Body = "T" + about + " is " + amount + "."
		q := Question{Answer: amount, Source: strconv.Itoa(g.add(m)), Keywords: m.Subject}
		level := Named
		if around := g.around(&m, month, day, about); !named {
			level = Dated
		} else if around {
			level = Discussed
		}
		if level == g.level {
			g.ask(q, &m, month, held)
		}
	}
}

// around adds a request the day before, a reply the day after, both or neither, and reports whether it added any.
func (g *generator) around(m *Message, month, day int, about string) bool {
	kind := g.rng.IntN(6) // 0 to 2: neither
	other := Message{From: m.To, To: m.From}
	if kind == 3 || kind == 5 {
		other.Date, other.Subject, other.Body = date(month, day-1), "Request: "+m.Subject, "Please tell me t"+about+"."
		g.add(other)
	}
	if kind == 4 || kind == 5 {
		other.Date, other.Subject, other.Body = date(month, day+1), "Re: "+m.Subject, "Thanks! I will check t"+about+"."
		g.add(other)
	}
	return kind > 2
}

func (g *generator) ask(q Question, m *Message, month int, held bool) {
	if g.level == Dated {
		q.From = m.From
		q.After, q.Before = date(month, 1), date(month, 31)
		q.Text = fmt.Sprintf("Search for %s from %s after %s before %s.", q.Keywords, q.From, q.After, q.Before)
	} else {
		q.Keywords += " " + months[month]
		q.Text = fmt.Sprintf("Search for %s.", q.Keywords)
	}
	if held {
		g.held = append(g.held, q)
	} else {
		g.train = append(g.train, q)
	}
}

func (g *generator) add(m Message) int {
	g.mail = append(g.mail, m)
	return len(g.mail) - 1
}

func (g *generator) person() string { return pick(g.rng, people) }

// date is a day of a month, both from January 2024 on.
func date(month, day int) string { return fmt.Sprintf("2024-%02d-%02d", month+1, day) }

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// people write to one another, about an item of a project. The words are plain, so that a small model copies them well.
var (
	people = strings.Fields(`Ann Bob Carl Dora Emma Finn Ida Max Nora Tom Lea Paul Rita Sam Tina Vera Ben Eva Leo Mia`)

	projects = strings.Fields(`
		river garden castle mirror silver candle bridge tiger planet cotton market forest island copper pepper tunnel
		window basket violin desert rocket ladder carpet orange harbor marble winter engine camera button bottle timber
		pocket needle saddle barrel cherry walnut ginger velvet meadow canyon falcon beaver badger turtle salmon spider
		anchor lantern hammer shovel pencil folder drawer helmet jacket pillow kettle teapot hazel cedar maple willow`)

	items = strings.Fields(`budget invoice salary price fee discount room desk order parcel ticket quota stock fine`)

	months = strings.Fields(`January February March April May June July August September October November December`)

	smallTalk = []string{
		"See you at lunch.", "The coffee is back.", "Who has my umbrella?", "Please close the door.", "I am late.",
		"The lift is slow today.", "There is cake.", "Happy birthday!", "The printer works again.", "Call me, please.",
	}
)
