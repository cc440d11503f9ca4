package ruler

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rating is what an answer says of an item.
type rating struct {
	score       float64
	explanation string
	pass        bool
	criteria    map[string]float64
}

type rawRating struct {
	ID           json.RawMessage            `json:"id"`
	TrajectoryID json.RawMessage            `json:"trajectory_id"` // what some judges call it
	Explanation  string                     `json:"explanation"`
	Score        json.RawMessage            `json:"score"`
	Pass         *bool                      `json:"pass"`
	Criteria     map[string]json.RawMessage `json:"criteria"`
}

// parse reads an answer. Defects are what is wrong with it, for the judge to correct; the ratings are complete when
// there are none.
func (a *ask) parse(text string) (ratings map[string]rating, defects []string) {
	entries, ok := findScores(text)
	if !ok {
		return nil, []string{`there is no JSON object with "scores", a list of objects`}
	}
	ratings = map[string]rating{}
	wanted := map[string]bool{}
	for _, item := range a.items {
		wanted[item.ID] = true
	}
	for i, e := range entries {
		id := cmp.Or(textOf(e.ID), textOf(e.TrajectoryID))
		switch _, twice := ratings[id]; {
		case !wanted[id]:
			defects = append(defects, fmt.Sprintf("entry %d has the id %q, which is not one of the attempts", i+1, clip(id)))
			continue
		case twice:
			defects = append(defects, fmt.Sprintf("the id %q is there twice", id))
			continue
		}
		r, problems := a.read(e)
		ratings[id] = r
		for _, p := range problems {
			defects = append(defects, fmt.Sprintf("id %q: %s", id, p))
		}
	}
	for _, item := range a.items {
		if _, ok := ratings[item.ID]; !ok {
			defects = append(defects, fmt.Sprintf("the id %q is missing", item.ID))
		}
	}
	return ratings, defects
}

func (a *ask) read(e rawRating) (r rating, problems []string) {
	r.explanation = e.Explanation
	if a.passFail {
		if e.Pass == nil {
			problems = append(problems, "pass is missing: want true or false")
		} else {
			r.pass = *e.Pass
		}
	}
	if len(a.criteria) == 0 {
		text := textOf(e.Score) // of a number, or a text that is one
		score, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(score) || score < 0 || score > 1 {
			score = 0
			problems = append(problems,
				fmt.Sprintf("the score is %s, want a number from 0 to 1", clip(cmp.Or(text, "missing"))))
		}
		r.score = score
		return r, problems
	}
	r.criteria = map[string]float64{}
	sum, weights := 0.0, 0.0
	for i := range a.criteria {
		c := &a.criteria[i]
		value, ok := c.value(textOf(e.Criteria[c.Name]))
		if !ok {
			problems = append(problems,
				fmt.Sprintf("criterion %q is %q, want one of %q", c.Name, clip(textOf(e.Criteria[c.Name])), c.Choices))
			continue
		}
		r.criteria[c.Name] = value
		sum, weights = sum+c.Weight*value, weights+c.Weight
	}
	if weights > 0 {
		r.score = sum / weights
	}
	return r, problems
}

// textOf is a JSON string or number as text; anything else as it is written.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	if text := strings.TrimSpace(string(raw)); text != "null" {
		return text
	}
	return ""
}

// clip shortens what is quoted back to a judge.
func clip(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "..."
	}
	return text
}

// maxStarts bounds how many beginnings of JSON are tried in an answer.
const maxStarts = 200

// findScores finds the list of ratings in a text: in the last JSON object that has "scores", since judges think aloud
// before they answer, or else in the last list of objects with ids.
func findScores(text string) (entries []rawRating, ok bool) {
	content := []byte(text)
	for at, tried := 0, 0; at < len(content) && tried < maxStarts; tried++ {
		next := bytes.IndexAny(content[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		d := json.NewDecoder(bytes.NewReader(content[at:]))
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			at++
			continue
		}
		if list, found := scoresIn(raw); found {
			entries, ok = list, true
		}
		at += int(d.InputOffset())
	}
	return entries, ok
}

// scoresIn reads the ratings of an object, or of a list.
func scoresIn(raw json.RawMessage) (entries []rawRating, ok bool) {
	var object struct {
		Scores *[]rawRating `json:"scores"`
	}
	if json.Unmarshal(raw, &object) == nil && object.Scores != nil {
		return *object.Scores, true
	}
	if raw[0] == '[' && json.Unmarshal(raw, &entries) == nil && len(entries) > 0 &&
		(entries[0].ID != nil || entries[0].TrajectoryID != nil) {
		return entries, true
	}
	return nil, false
}
