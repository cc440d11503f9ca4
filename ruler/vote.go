package ruler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
)

// vote is one judge's opinion of all subjects of a group.
type vote struct {
	r      *Ruler
	judge  Judge
	task   *task
	list   []subject
	seed   uint64
	cost   Usage
	again  int      // answers that were sent back
	rating []rating // of each subject
}

// seedOf mixes the seed of a vote from what it depends on.
func (r *Ruler) seedOf(content string, judge, vote int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %d %s", r.opts.Seed, judge, vote, content)
	return h.Sum64()
}

// run asks the judge. When the prompts do not fit its context, chunks are made smaller.
func (v *vote) run(ctx context.Context) error {
	for size := v.r.opts.Chunk; ; size = max(2, size/2) {
		err := v.inChunks(ctx, size)
		if !errors.Is(err, art.ErrContextLength) || min(size, len(v.list)) <= 2 {
			return err
		}
	}
}

// inChunks judges chunks of at most size subjects, all of which have the anchor, the first of the order.
func (v *vote) inChunks(ctx context.Context, size int) error {
	rng := rand.New(rand.NewPCG(v.seed, uint64(size)))
	order := rng.Perm(len(v.list))
	if len(order) <= size {
		ratings, err := v.compare(ctx, rng, order)
		v.rating = ratings
		return err
	}
	anchor, others := order[0], order[1:]
	var chunks [][]int
	var results [][]rating // by subject
	for chunk := range slices.Chunk(others, size-1) {
		members := append([]int{anchor}, chunk...)
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		ratings, err := v.compare(ctx, rng, members)
		if err != nil {
			return err
		}
		chunks, results = append(chunks, members), append(results, ratings)
	}
	// Bring the scores of chunks to one scale, by that of the anchor: see the package comment. results[c][i] is the
	// rating of subject i in chunk c.
	mean := 0.0
	for _, r := range results {
		mean += r[anchor].score / float64(len(results))
	}
	v.rating = make([]rating, len(v.list))
	for c, members := range chunks {
		for _, i := range members {
			v.rating[i] = results[c][i]
			v.rating[i].score = rescale(results[c][i].score, results[c][anchor].score, mean)
		}
	}
	v.rating[anchor].score = mean
	return nil
}

// rescale maps [0, p] to [0, a] and [p, 1] to [a, 1], each evenly.
func rescale(s, p, a float64) float64 {
	switch {
	case s == p:
		return a
	case s < p:
		return s * a / p
	}
	return 1 - (1-s)*(1-a)/(1-p)
}

// compare asks about some subjects, in their order, and returns ratings by subject.
func (v *vote) compare(ctx context.Context, rng *rand.Rand, members []int) ([]rating, error) {
	a := &ask{task: v.task, nonce: word(rng, 8)}
	used := map[string]bool{}
	for _, i := range members {
		id := word(rng, 4)
		for used[id] {
			id = word(rng, 4)
		}
		used[id] = true
		a.items = append(a.items, Item{ID: id, Trajectory: v.list[i].Trajectory})
	}
	byID, err := v.answer(ctx, a, rng.Uint64())
	if err != nil {
		return nil, err
	}
	out := make([]rating, len(v.list))
	for at, i := range members {
		out[i] = byID[a.items[at].ID]
	}
	return out, nil
}

// word is made of letters and digits that are not mistaken for one another.
func word(rng *rand.Rand, n int) string {
	const letters = "abcdefghjkmnpqrstuvwxyz23456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}

// answer asks a judge, and once more with the defects of its answer when that is of no use.
func (v *vote) answer(ctx context.Context, a *ask, seed uint64) (map[string]rating, error) {
	messages, err := v.r.fit(a)
	if err != nil {
		return nil, err
	}
	q := &Question{Messages: messages, Items: a.items, Chat: v.r.opts.Chat}
	if q.Chat.Seed == nil {
		q.Chat.Seed = &seed
	}
	if v.r.opts.Structured {
		q.Chat.ResponseFormat = &art.ResponseFormat{Type: art.FormatJSONSchema, Name: "scores", Schema: a.schema()}
	}
	if text, ok := v.r.cache.read(v.judge, q); ok {
		if ratings, defects := a.parse(text); len(defects) == 0 {
			v.cost.Cached++
			v.r.spent.settle(Usage{Cached: 1}, 0)
			return ratings, nil
		}
	}
	first := *q
	for attempt := 0; ; attempt++ {
		reply, err := v.call(ctx, q)
		if err != nil {
			return nil, err
		}
		ratings, defects := a.parse(reply.Text)
		if len(defects) == 0 {
			if err := v.r.cache.write(v.judge, &first, reply.Text); err != nil {
				v.r.opts.Logger.Warn("an answer of the judge was not cached", "err", err)
			}
			return ratings, nil
		}
		if attempt == 1 {
			return nil, &art.Error{Op: "judge", Err: fmt.Errorf("%w: %s: %s", ErrAnswer, v.judge.Name(), list(defects)),
				Hint: "take a stronger judge, raise MaxTokens of Options.Chat if its answers are cut, or set Options.OnFailure"}
		}
		v.again++
		next := *q
		next.Messages = append(append([]art.Message(nil), messages...), art.Assistant(reply.Text), art.User(
			"This answer cannot be used: "+list(defects)+
				". Write the whole answer again, with these defects corrected.\n\n"+a.form()))
		q = &next
	}
}

func list(defects []string) string {
	const most = 8
	if n := len(defects); n > most {
		defects = append(defects[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(defects, "; ")
}

// call asks once, with retries.
func (v *vote) call(ctx context.Context, q *Question) (*Reply, error) {
	o := &v.r.opts
	rng := rand.New(rand.NewPCG(*q.Chat.Seed, 1))
	for try := 0; ; try++ {
		prompt := 0
		for i := range q.Messages {
			prompt += o.CountTokens(q.Messages[i].Content)
		}
		if err := v.r.spent.take(o, prompt); err != nil {
			return nil, err
		}
		reply, err := bounded(ctx, o.Timeout, func(ctx context.Context) (*Reply, error) { return v.judge.Compare(ctx, q) })
		used := Usage{Calls: 1}
		if reply != nil {
			used.PromptTokens, used.CompletionTokens = reply.Usage.PromptTokens, reply.Usage.CompletionTokens
		}
		v.cost.add(used)
		v.r.spent.settle(used, prompt)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if try >= o.Retries || permanent(err) {
			return nil, &art.Error{Op: "judge " + v.judge.Name(), Err: err}
		}
		pause := min(30*time.Second, o.Backoff<<min(try, 20))
		pause -= time.Duration(rng.Float64() * float64(pause) / 2)
		o.Logger.Info("a call of the judge failed and is made again", "judge", v.judge.Name(), "in", pause, "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// bounded calls f and leaves it behind when it does not return in time.
func bounded(ctx context.Context, limit time.Duration, f func(context.Context) (*Reply, error)) (*Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded))
	defer cancel()
	type outcome struct {
		reply *Reply
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: errors.New("the judge panicked or ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("the judge panicked: %v", p)
			}
			done <- o
		}()
		o.reply, o.err = f(ctx)
		if o.reply == nil && o.err == nil {
			o.err = errors.New("the judge returned nothing")
		}
	}()
	select {
	case o := <-done:
		return o.reply, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func permanent(err error) bool {
	return slices.ContainsFunc([]error{
		art.ErrInvalid, art.ErrNotRegistered, art.ErrClosed, art.ErrUnsupported, art.ErrContextLength, ErrBudget,
	}, func(target error) bool { return errors.Is(err, target) })
}

// Usage is what judging has cost.
type Usage struct {
	Calls            int // of judges; answers of the cache are none
	Cached           int // answers that the cache had
	PromptTokens     int
	CompletionTokens int
}

// Usage returns what this ruler has cost so far.
func (r *Ruler) Usage() Usage {
	r.spent.mu.Lock()
	defer r.spent.mu.Unlock()
	return r.spent.Usage
}

func (u *Usage) add(v Usage) {
	u.Calls, u.Cached = u.Calls+v.Calls, u.Cached+v.Cached
	u.PromptTokens, u.CompletionTokens = u.PromptTokens+v.PromptTokens, u.CompletionTokens+v.CompletionTokens
}

// budget is what all groups have cost.
type budget struct {
	mu sync.Mutex
	Usage
	calls    int // made, and being made
	reserved int // estimated tokens of prompts of calls that are being made
}

// take reserves a call whose prompt has about so many tokens, or tells that the budget does not have it.
func (b *budget) take(o *Options, prompt int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	tokens := b.PromptTokens + b.CompletionTokens + b.reserved
	var err error
	switch {
	case o.MaxCalls > 0 && b.calls >= o.MaxCalls:
		err = fmt.Errorf("%w: %d calls were made", ErrBudget, b.calls)
	case o.MaxTokens > 0 && tokens+prompt > o.MaxTokens:
		err = fmt.Errorf("%w: %d tokens were used, and a prompt of about %d is next", ErrBudget, tokens, prompt)
	default:
		b.calls++
		b.reserved += prompt
		return nil
	}
	return &art.Error{Op: "judge", Err: err, Hint: "raise MaxCalls or MaxTokens of ruler.Options, or judge fewer groups"}
}

// settle replaces a reservation by what the call used.
func (b *budget) settle(u Usage, prompt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= prompt
	b.add(u)
}
