package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"unicode"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/ruler/reward"
)

// ErrTooFew is wrapped by the error of a collection that has fewer items than were wanted when its calls are spent.
var ErrTooFew = errors.New("the model wrote too few usable items")

// Collection is a list of items that a model is asked to write.
type Collection[T any] struct {
	// Model writes: a base model, a hosted one, or the one that is to be trained.
	Model *art.Model
	// Key is the field of the answer's JSON object that has the items.
	Key string
	// Item is the JSON Schema of an item. Answers are restricted to it.
	Item json.RawMessage
	// FreeText asks for JSON in the text of the reply only, for services that cannot restrict replies to a schema.
	FreeText bool
	// Prompt asks for n further items; have are those that there are.
	Prompt func(n int, have []T) []art.Message
	// Check returns what is wrong with an item, nil for nothing. May be nil.
	Check func(T) error
	// Text is what makes an item different from others. Items that are [Alike] in it are duplicates.
	Text func(T) string
	// Want is the number of items.
	Want int
	// PerCall is the most items of a call. Default 8.
	PerCall int
	// MaxCalls bounds the calls. Default: three times as many as are needed when each item is of use.
	MaxCalls int
	// Chat are the settings. Default: those of the model.
	Chat art.ChatOptions
	// Logger receives what was left out. nil discards.
	Logger *slog.Logger
}

// Call is what one request to the model came to.
type Call struct {
	Asked, Kept int
	// Dropped are the reasons for what was not kept: of single items, or one for the whole answer.
	Dropped []string
	// Usage is what the call cost.
	Usage art.Usage
}

// Collect asks until there are enough items. Each call and each item that was left out is reported: an answer that is
// prose counts as a call, and the next one asks for what is missing. When the calls are spent the items so far are
// returned with an error that wraps [ErrTooFew] and lists the reasons; so they are when not even the first two answers
// can be read, since such a model will not do better. have are items from before, which may be nil.
func Collect[T any](ctx context.Context, c *Collection[T], have []T) ([]T, []Call, error) {
	per := cmp.Or(c.PerCall, 8)
	limit := cmp.Or(c.MaxCalls, 3*((c.Want-len(have)+per-1)/per))
	var calls []Call
	unread := 0
	for len(have) < c.Want {
		if unread == 2 && unread == len(calls) {
			return have, calls, c.unreadable(len(have), calls)
		}
		if len(calls) >= limit {
			return have, calls, tooFew(c.Want, len(have), calls)
		}
		call := Call{Asked: min(per, c.Want-len(have))}
		items, err := c.ask(ctx, &call, have)
		if err != nil {
			return have, calls, err
		}
		if len(call.Dropped) > 0 {
			unread++
		}
		for _, item := range items {
			if len(have) == c.Want {
				call.drop("it is more than was asked for")
			} else if problem := c.problem(item, have); problem != "" {
				call.drop(problem)
			} else {
				have = append(have, item)
				call.Kept++
			}
		}
		if len(items) < call.Asked && len(call.Dropped) == 0 {
			call.drop(fmt.Sprintf("the answer has %d of %s", len(items), quantity.Of(call.Asked, "item")))
		}
		calls = append(calls, call)
		if c.Logger != nil {
			c.Logger.Info("items were written", "kind", c.Key, "call", len(calls), "asked", call.Asked, "kept", call.Kept,
				"dropped", call.Dropped)
		}
	}
	return have, calls, nil
}

func (c *Call) drop(reason string) { c.Dropped = append(c.Dropped, reason) }

// ask makes one call. An answer of no use is a note in call and no error.
func (c *Collection[T]) ask(ctx context.Context, call *Call, have []T) ([]T, error) {
	opts := c.Chat
	if !c.FreeText {
		opts.ResponseFormat = &art.ResponseFormat{Type: art.FormatJSONSchema, Name: c.Key, Schema: fmt.Appendf(nil,
			`{"type":"object","properties":{%q:{"type":"array","minItems":1,"maxItems":%d,"items":%s}},`+
				`"required":[%q],"additionalProperties":false}`, c.Key, call.Asked, c.Item, c.Key)}
	}
	response, err := c.Model.Complete(ctx, &art.History{Messages: c.Prompt(call.Asked, have)}, &opts)
	if err != nil {
		return nil, fmt.Errorf("asking %s for %s: %w", c.Model.Name(), c.Key, err)
	}
	call.Usage = response.Usage
	items, problem := parseItems[T](response.Message.Content, c.Key)
	if problem != "" {
		if response.Finish == art.FinishLength {
			problem += "; the reply was cut at its token limit"
		}
		call.drop(problem)
	}
	return items, nil
}

func parseItems[T any](text, key string) (items []T, problem string) {
	object, ok := reward.FirstJSON(text)
	if !ok {
		return nil, fmt.Sprintf("the answer has no JSON: %s", quote(text))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil || fields[key] == nil {
		return nil, fmt.Sprintf("the answer has no field %q: %s", key, quote(text))
	}
	if err := json.Unmarshal(fields[key], &items); err != nil {
		return nil, fmt.Sprintf("%q: %v", key, err)
	}
	return items, ""
}

func (c *Collection[T]) problem(item T, have []T) string {
	if c.Check != nil {
		if err := c.Check(item); err != nil {
			return err.Error()
		}
	}
	text := c.Text(item)
	for _, other := range have {
		if Alike(text, c.Text(other)) {
			return fmt.Sprintf("%s is like %s", quote(text), quote(c.Text(other)))
		}
	}
	return ""
}

func (c *Collection[T]) unreadable(have int, calls []Call) error {
	return &art.Error{
		Op: "collect",
		Err: fmt.Errorf("%w: %d of %d; %s was asked twice for JSON with a list %q of items like %s, and %s; then %s",
			ErrTooFew, have, c.Want, c.Model.Name(), c.Key, c.Item, calls[0].Dropped[0], calls[1].Dropped[0]),
		Hint: "take a model that follows instructions, or raise its MaxTokens if its answers are cut",
	}
}

func tooFew(want, have int, calls []Call) error {
	const quoted = 3
	var reasons []string
	for i, call := range calls {
		for _, reason := range call.Dropped {
			reasons = append(reasons, fmt.Sprintf("call %d: %s", i+1, reason))
		}
	}
	more := ""
	if n := len(reasons) - quoted; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return &art.Error{
		Op: "collect", Err: fmt.Errorf("%w: %d of %d in %s; %s%s", ErrTooFew, have, want, quantity.Of(len(calls), "call"),
			strings.Join(reasons[:min(quoted, len(reasons))], "; "), more),
		Hint: "take a stronger generator, raise its MaxTokens or MaxCalls, or ask for fewer",
	}
}

func quote(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "..."
	}
	return fmt.Sprintf("%q", text)
}

// Alike tells whether two texts are duplicates: the same words but for case and punctuation, or a [Similarity] of 0.8
// and more. Texts whose words with digits differ, such as ids and dates, are not: they ask for different things.
func Alike(a, b string) bool {
	x, y := words(a), words(b)
	digits := func(of, without map[string]bool) bool {
		for w := range of {
			if strings.ContainsFunc(w, unicode.IsDigit) && !without[w] {
				return true
			}
		}
		return false
	}
	return !digits(x, y) && !digits(y, x) && jaccard(x, y) >= 0.8
}

// Similarity is the share of words that two texts have in common (Jaccard):
//
//	|A ∩ B| / |A ∪ B|
//
// where A and B are their sets of words, in lower case. It is 1 for two texts without words.
func Similarity(a, b string) float64 { return jaccard(words(a), words(b)) }

// Spread is how much texts differ: 1 minus the mean over the texts of the similarity to the most similar other one. It
// is 0 when each has a copy, and NaN for fewer than two.
func Spread(texts []string) float64 {
	if len(texts) < 2 {
		return math.NaN()
	}
	sets := make([]map[string]bool, len(texts))
	for i, text := range texts {
		sets[i] = words(text)
	}
	sum := 0.0
	for i := range sets {
		closest := 0.0
		for j := range sets {
			if i != j {
				closest = max(closest, jaccard(sets[i], sets[j]))
			}
		}
		sum += closest
	}
	return 1 - sum/float64(len(texts))
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSymbol(r)
	}) {
		set[w] = true
	}
	return set
}

func jaccard(a, b map[string]bool) float64 {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	all := len(a) + len(b) - both
	if all == 0 {
		return 1
	}
	return float64(both) / float64(all)
}
