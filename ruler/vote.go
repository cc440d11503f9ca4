package ruler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

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
	n := len(v.list)
	mean := 0.0
	for _, r := range results {
		mean += r[anchor].score / float64(len(results))
	}
	out := make([]rating, n)
	for c, members := range chunks {
		p := results[c][anchor].score
		for _, i := range members {
			out[i] = results[c][i]
			out[i].score = rescale(results[c][i].score, p, mean)
		}
	}
	out[anchor].score = mean
	v.rating = out
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
