package ruler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
)

// subject is a trajectory to judge, and the indices in the group of all that are equal to it.
type subject struct {
	*art.Trajectory
	members []int
}

// subjectsOf returns the trajectories of a group without repetitions: equal ones are judged once. For rules, which may
// look at metrics, those count too.
func (r *Ruler) subjectsOf(g *art.TrajectoryGroup) ([]subject, error) {
	rules := slices.ContainsFunc(r.judges, func(j Judge) bool { _, rule := j.(JudgeFunc); return rule })
	var list []subject
	index := map[string]int{}
	for i, t := range g.Trajectories {
		key, err := contentOf(t)
		if err != nil {
			return nil, err
		}
		if rules {
			key += fmt.Sprint(t.Metrics) // in the order of keys
		}
		at, ok := index[key]
		if !ok {
			at = len(list)
			index[key] = at
			list = append(list, subject{Trajectory: t})
		}
		list[at].members = append(list[at].members, i)
	}
	return list, nil
}

// contentOf is what a trajectory says, as a text: messages and tools of its histories.
func contentOf(t *art.Trajectory) (string, error) {
	var b bytes.Buffer
	for _, h := range t.Histories() {
		if err := json.NewEncoder(&b).Encode([]any{h.Messages, h.Tools}); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// commonPrefix is how many messages the main histories have in common.
func commonPrefix(list []subject) (int, error) {
	if len(list) < 2 {
		return 0, nil
	}
	shared := -1
	var first [][]byte
	for i, s := range list {
		texts, err := messageTexts(s.Messages)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			first, shared = texts, len(texts)
			continue
		}
		n := 0
		for n < min(shared, len(texts)) && bytes.Equal(texts[n], first[n]) {
			n++
		}
		shared = n
	}
	return shared, nil
}

func messageTexts(messages []art.Message) ([][]byte, error) {
	out := make([][]byte, len(messages))
	for i := range messages {
		text, err := encode(&messages[i])
		if err != nil {
			return nil, err
		}
		out[i] = text
	}
	return out, nil
}

// encode writes JSON on one line, with < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
