package world

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Question is one about a database.
type Question struct {
	// ID is of the database and the question, such as "orders 2, 11", and tells it apart within a world.
	ID   string
	Kind string
	// Schema shows the tables of the database, a line each.
	Schema string
	Text   string
	// Query is the right one, and Answer what it gives.
	Query, Answer string
	// Misses are what one gets without some of the conventions. No two answers are the same, nor the same as Answer.
	Misses []Miss
	// Names are what a question that asks for a name chooses among; nil if it asks for a number.
	Names []string
	// Store is the database.
	Store *Store
}

// Miss is the query that misses some conventions, and what it gives.
type Miss struct {
	Missed        Convention
	Query, Answer string
}

// smallest is the least number that is an answer: smaller ones can be guessed.
const smallest = 8

// answer runs the queries of a draft. ok is false if the question is of no use: it has no answer, one that can be
// guessed or stands in the question, or the same answer with and without a convention.
func (q *Question) answer(ctx context.Context, d *draft) (ok bool, err error) {
	said := numbers(q.Text)
	var seen []string
	for _, missed := range d.rules.subsets() {
		query := d.query(missed)
		found, err := q.Store.read(ctx, query) // it is no agent's: it needs no bounds
		if err != nil {
			return false, fmt.Errorf("%s: %w", query, err)
		}
		r := show(found)
		if d.names == nil {
			n, err := strconv.ParseFloat(r.Cell, 64)
			if err != nil || n < smallest || contains(said, n) { // NULL is no number
				return false, nil //nolint:nilerr // it is one of no use
			}
		}
		for _, other := range seen {
			if d.names == nil && near(r.Cell, other) || r.Cell == other {
				return false, nil
			}
		}
		seen = append(seen, r.Cell)
		if missed == 0 {
			q.Query, q.Answer = query, r.Cell
		} else {
			q.Misses = append(q.Misses, Miss{missed, query, r.Cell})
		}
	}
	return true, nil
}

// near reports whether two numbers are so close that an answer might be taken for both.
func near(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Abs(x-y) < 10*tolerance
}

// Judge reports how many conventions an answer misses, 0 for the right one. ok is false for any other answer.
//
// A number may be written as 1,234.5, with a currency or in a sentence; of several numbers the last one counts, without
// those that stand in the question. It may be rounded to cents. A name may stand in a sentence too, which names no
// other one.
func (q *Question) Judge(reply string) (missed int, ok bool) {
	said := q.named(reply)
	if q.Names == nil {
		said = q.number(reply)
	}
	if q.same(said, q.Answer) {
		return 0, true
	}
	for _, m := range q.Misses {
		if q.same(said, m.Answer) {
			return m.Missed.Len(), true
		}
	}
	return 0, false
}

// same reports whether what was said is an answer. Nothing was said if it is empty.
func (q *Question) same(said, answer string) bool {
	if said == "" || q.Names != nil {
		return said != "" && said == answer
	}
	x, _ := strconv.ParseFloat(said, 64)
	y, _ := strconv.ParseFloat(answer, 64)
	return math.Abs(x-y) < tolerance
}

// tolerance of a number: half a cent, and room for rounding.
const tolerance = 0.0051

// named returns the one name that occurs in a reply, empty for none or several.
func (q *Question) named(reply string) string {
	found, reply := "", strings.ToLower(reply)
	for _, name := range q.Names {
		if !strings.Contains(reply, strings.ToLower(name)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// digits are a number, perhaps with commas between thousands. What is part of a word or of a date is none.
var digits = regexp.MustCompile(`-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?`)

// number returns the last number of a reply that does not stand in the question, empty for none.
func (q *Question) number(reply string) string {
	said, last := numbers(q.Text), ""
	for _, n := range numbers(reply) {
		if !contains(said, n) {
			last = strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return last
}

// numbers returns those of a text.
func numbers(text string) (out []float64) {
	for _, s := range digits.FindAllString(text, -1) {
		if n, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// contains reports whether a number is among others.
func contains(list []float64, x float64) bool {
	for _, y := range list {
		if math.Abs(x-y) < tolerance {
			return true
		}
	}
	return false
}
