// Package ruler lets a language model judge the trajectories of a group against each other, in place of a hand-made
// reward or beside it: RULER, relative universal LLM-elicited rewards (OpenPipe, 2025).
//
//	backend, err := openai.Open(ctx, nil) // or any other backend; the key is OPENAI_API_KEY
//	judge := art.NewModel("gpt-5.4", nil) // what the API calls the model
//	err = judge.Register(ctx, backend)
//	groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{After: ruler.New(judge, nil).After})
//
// Each trajectory gets a score from 0 to 1 and an explanation. Advantages only need differences within a group, and
// these a judge sees well when it sees all members at once.
//
// # What the judge sees
//
// One prompt with the rubric, the messages that all trajectories have in common, once, the tools, and what differs of
// each trajectory, additional histories included. Trajectories have random ids and stand in random order, another one
// for each vote, so that a judge which prefers a position adds noise and no bias. What a trajectory says is JSON
// between delimiters with a random number, and the judge is told that it is data.
//
// A prompt that is too long for the judge is shortened by rule: tool results are cut to a length, the same for all
// members, and where that is not enough all other messages are too. The judge is told.
//
// # What becomes of its answer
//
// Scores are matched by id. An answer that is not JSON, has ids that are missing, twice or unknown, or scores that are
// not numbers from 0 to 1, goes back once with its defects named. Errors of transport are retried. What fails after
// that is handled by [Options].OnFailure.
//
// The group keeps all that it had. The reward becomes the mean score; the one before is the metric
// "independent_reward"; "ruler_score" is the score; explanations are in Logs. Metrics of the group tell calls, tokens
// and the disagreement of votes.
//
// # Large groups
//
// More than [Options].Chunk trajectories are judged in chunks that share one member, the anchor, so that the number of
// calls grows with the size of the group and not with its square. With p the score of the anchor in a chunk and a its
// mean over the chunks, a score s of that chunk becomes
//
//	s a / p                          for s <= p
//	1 - (1 - s) (1 - a) / (1 - p)    for s > p
//
// which keeps the order within the chunk and gives the anchor the same score in all.
package ruler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

// ErrBudget is wrapped by the error of a group that was not judged because [Options].MaxCalls or MaxTokens are spent.
var ErrBudget = errors.New("the judge's budget is spent")

// ErrAnswer is wrapped by the error of an answer of the judge that is of no use, also after its defects were named.
var ErrAnswer = errors.New("the judge's answer is of no use")

// Policy says what becomes of a group that could not be judged.
type Policy int

// Policies.
const (
	Fail Policy = iota // it is an error: in a gather, the trajectories of the group become failures
	Drop               // the group is left out
	Keep               // the group keeps its rewards, and its metric "ruler_failed" is 1
)

// Options of [New]. Zero values are the defaults.
type Options struct {
	// Rubric says what is good. Default [DefaultRubric].
	Rubric string
	// RubricOf returns the rubric and the criteria of a group: for tasks with their own. An empty rubric is Rubric, and no
	// criteria are Criteria. May be nil.
	RubricOf func(g *art.TrajectoryGroup) (rubric string, criteria []Criterion)
	// Criteria replace the single score: each is judged apart, and the score is the weighted mean of their values. Each is
	// a metric of the trajectory too, "ruler_<name>".
	Criteria []Criterion
	// PassFail asks beside the comparison whether each trajectory is good enough by itself. The share of votes that say so
	// is the metric "ruler_pass": it tells a group of which all are bad from one of which all are good.
	PassFail bool
	// TiesOnly leaves groups alone whose rewards differ, so that the judge ranks only what a reward cannot tell apart.
	TiesOnly bool

	// Judges are asked beside the model given to [New], and weigh the same.
	Judges []Judge
	// Votes is how often each judge is asked, with another order each time. Default 1.
	Votes int
	// Chunk is the most trajectories of one prompt. Default 8, at least 2.
	Chunk int
	// Context bounds the prompt in tokens. Default 32,000.
	Context int
	// CountTokens counts the tokens of a text. nil estimates one for each 3 bytes, which is more than most texts have.
	CountTokens func(text string) int
	// Chat are the settings of the judge: temperature, MaxTokens. The default is what the judge's model has.
	Chat art.ChatOptions
	// Structured restricts the judge's answers to the form that is asked for, by a JSON Schema with the ids of the
	// attempts: small models give usable answers then. The judge's backend must support response formats, with
	// prefixItems.
	Structured bool
	// Seed of ids, of orders and of the judge's sampling, beside the content of the group. Default 0.
	Seed uint64

	// OnFailure says what becomes of a group that could not be judged. Default [Fail].
	OnFailure Policy
	// Retries is how often a call that failed is made again. Default 3; negative is none.
	Retries int
	// Backoff is the pause before the first retry. It doubles with each, up to 30 s. Default 500 ms.
	Backoff time.Duration
	// Timeout bounds a call, with the time that the judge's backend lets it wait for others, such as for its
	// RequestsPerMinute. Default 2 minutes.
	Timeout time.Duration
	// MaxCalls and MaxTokens bound what all groups together cost: calls, and tokens of prompts and answers. When they are
	// spent, groups fail with an [ErrBudget]. 0 is no bound.
	MaxCalls  int
	MaxTokens int
	// Cache is a folder of answers that is read before a judge is asked. Its keys are all that an answer depends on: the
	// judge, its settings with the defaults of its model, and the prompt. Where a model is served from is not known here:
	// give each server that has other weights under the same name a folder of its own. Empty is none.
	Cache string
	// Logger receives what went wrong and was handled. nil discards.
	Logger *slog.Logger
}

// Ruler judges groups. It is safe for concurrent use.
type Ruler struct {
	opts   Options
	judges []Judge
	err    error // of the options
	spent  budget
	cache  *cache
}

// New returns a ruler that asks judge. opts may be nil. Options that make no sense are the error of each judgement.
func New(judge *art.Model, opts *Options) *Ruler {
	r := &Ruler{}
	if opts != nil {
		r.opts = *opts
	}
	o := &r.opts
	if judge != nil {
		r.judges = append(r.judges, FromModel(judge))
	}
	r.judges = append(r.judges, o.Judges...)
	o.Rubric = cmp.Or(o.Rubric, DefaultRubric)
	o.Votes, o.Chunk, o.Context = cmp.Or(o.Votes, 1), cmp.Or(o.Chunk, 8), cmp.Or(o.Context, 32_000)
	o.Retries, o.Backoff = cmp.Or(o.Retries, 3), cmp.Or(o.Backoff, 500*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	if o.CountTokens == nil {
		o.CountTokens = func(text string) int { return (len(text) + 2) / 3 }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Cache != "" {
		r.cache = &cache{dir: o.Cache}
	}
	r.err = r.validate()
	return r
}

func (r *Ruler) validate() error {
	o := &r.opts
	var problems []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	check(len(r.judges) > 0 && !slices.Contains(r.judges, nil), "there is no judge, or one is nil")
	check(o.Votes > 0, "Votes is %d, want > 0", o.Votes)
	check(o.Chunk > 1, "Chunk is %d, want > 1", o.Chunk)
	check(o.Context > 0, "Context is %d, want > 0", o.Context)
	check(o.OnFailure >= Fail && o.OnFailure <= Keep, "OnFailure is %d, want Fail, Drop or Keep", o.OnFailure)
	check(o.Backoff > 0 && o.Timeout > 0, "Backoff is %v and Timeout %v, want > 0", o.Backoff, o.Timeout)
	check(o.MaxCalls >= 0 && o.MaxTokens >= 0, "MaxCalls is %d and MaxTokens %d, want >= 0", o.MaxCalls, o.MaxTokens)
	problems = append(problems, criteriaProblems(o.Criteria)...)
	if len(problems) == 0 {
		return nil
	}
	return invalid(strings.Join(problems, "; "), "correct ruler.Options")
}

func invalid(problem, hint string) error {
	return &art.Error{Op: "judge", Err: fmt.Errorf("%w: %s", art.ErrInvalid, problem), Hint: hint}
}

// Score judges a group once. See [Ruler.Score].
func Score(ctx context.Context, judge *art.Model, g *art.TrajectoryGroup, opts *Options) (*art.TrajectoryGroup, error) {
	return New(judge, opts).Score(ctx, g)
}

// After judges a group: it is a hook for [art.GatherOptions].
func (r *Ruler) After(ctx context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
	judged, err := r.Score(ctx, g)
	if judged == nil || err != nil {
		return nil, err
	}
	return []*art.TrajectoryGroup{judged}, nil
}

// Score returns a copy of a group whose rewards are the scores of the judges. With [Options].OnFailure [Drop], a group
// that could not be judged is nil, without an error. An empty group is returned as it is. Trajectories that are nil are
// left out.
func (r *Ruler) Score(ctx context.Context, g *art.TrajectoryGroup) (*art.TrajectoryGroup, error) {
	if r.err != nil {
		return nil, r.err
	}
	if g == nil {
		return nil, invalid("the group is nil", "give a group of a gather")
	}
	out := g.Clone()
	out.Trajectories = slices.DeleteFunc(out.Trajectories, func(t *art.Trajectory) bool { return t == nil })
	if len(out.Trajectories) == 0 || r.opts.TiesOnly && rewardsDiffer(out) {
		return out, nil
	}
	v, err := r.judge(ctx, out)
	if err == nil {
		v.apply(out)
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	switch r.opts.OnFailure {
	case Drop:
		r.opts.Logger.Warn("a group was dropped: it could not be judged", "err", err)
		return nil, nil
	case Keep:
		r.opts.Logger.Warn("a group keeps its rewards: it could not be judged", "err", err)
		setMetric(&out.Metrics, "ruler_failed", 1)
		return out, nil
	}
	return nil, err
}

// rewardsDiffer tells whether there is a difference to learn from already.
func rewardsDiffer(g *art.TrajectoryGroup) bool {
	return slices.ContainsFunc(g.Trajectories, func(t *art.Trajectory) bool {
		return math.Abs(t.Reward-g.Trajectories[0].Reward) > 1e-12*max(1, math.Abs(t.Reward))
	})
}

func setMetric(m *map[string]float64, key string, value float64) {
	if *m == nil {
		*m = map[string]float64{}
	}
	(*m)[key] = value
}
