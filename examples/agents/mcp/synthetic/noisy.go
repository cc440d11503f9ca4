package synthetic

import (
	"context"
	"hash/fnv"
	"math/rand/v2"

	"github.com/goart-dev/art/ruler"
)

// Noisy returns a judge that knows what the checker says and errs: a share of its scores are chance, and the others are
// off by a tenth or so. Its errors are a function of the ids that package ruler draws.
func Noisy(share float64) ruler.JudgeFunc {
	return func(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
		var ratings []ruler.Rating
		for _, item := range items {
			h := fnv.New64a()
			h.Write([]byte(item.ID))
			rng := rand.New(rand.NewPCG(h.Sum64(), uint64(len(items))))
			score := item.Trajectory.Reward + 0.1*rng.NormFloat64()
			if rng.Float64() < share {
				score = rng.Float64()
			}
			ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: "a guess", Score: min(1, max(0, score))})
		}
		return ratings, nil
	}
}
