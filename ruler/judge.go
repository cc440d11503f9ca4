package ruler

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goart-dev/art"
)

// Judge compares trajectories. [FromModel] makes one of a model; others may be rules, or ask people.
type Judge interface {
	// Name is part of the keys of the cache, and of errors.
	Name() string
	// Compare answers a question with text that holds JSON, as the question's messages ask for; [Answer] writes it.
	Compare(ctx context.Context, q *Question) (*Reply, error)
}

// Question is what a judge is asked.
type Question struct {
	// Messages are the prompt for a language model.
	Messages []art.Message
	// Items are what is to be compared, in the order of the prompt: for judges that read no prompt.
	Items []Item
	// Chat are the settings, with a seed.
	Chat art.ChatOptions
}

// Item is a trajectory under the id that it has in the question.
type Item struct {
	ID         string
	Trajectory *art.Trajectory
}

// Reply is what a judge said.
type Reply struct {
	Text  string
	Usage art.Usage
}

// Rating is what a judge says of one item.
type Rating struct {
	ID          string  `json:"id"`
	Explanation string  `json:"explanation"`
	Score       float64 `json:"score"` // from 0 to 1
	Pass        bool    `json:"pass"`  // for [Options].PassFail
}

// Answer writes ratings as the JSON that is asked for.
func Answer(ratings ...Rating) string {
	content, err := json.Marshal(map[string]any{"scores": ratings})
	if err != nil { // a score that is no number
		return fmt.Sprintf("%v", err)
	}
	return string(content)
}

// JudgeFunc is a [Judge] that rates items by a function: a rule, which may look at their metrics too. It is called
// "rule".
type JudgeFunc func(ctx context.Context, items []Item) ([]Rating, error)

// Name implements [Judge].
func (f JudgeFunc) Name() string { return "rule" }

// Compare implements [Judge].
func (f JudgeFunc) Compare(ctx context.Context, q *Question) (*Reply, error) {
	ratings, err := f(ctx, q.Items)
	if err != nil {
		return nil, err
	}
	return &Reply{Text: Answer(ratings...)}, nil
}

// FromModel makes a judge of a registered model. Its completions are not recorded, also where the agent's are.
func FromModel(m *art.Model) Judge { return modelJudge{m} }

type modelJudge struct{ m *art.Model }

// Name implements [Judge].
func (j modelJudge) Name() string {
	name := fmt.Sprintf("%s@%d", j.m.Name(), j.m.Step())
	if base := j.m.Options().Base; base != "" {
		return base + "/" + name
	}
	return name
}

// Compare implements [Judge].
func (j modelJudge) Compare(ctx context.Context, q *Question) (*Reply, error) {
	var response *art.ChatResponse
	// The recording of the agent, if there is one, is left alone: an inner one takes the judge's replies, and is dropped.
	_, err := art.Record(ctx, func(ctx context.Context) error {
		var err error
		response, err = j.m.Complete(ctx, &art.History{Messages: q.Messages}, &q.Chat)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Reply{Text: response.Message.Content, Usage: response.Usage}, nil
}
