package tensorboard

import (
	"math"
	"slices"

	"github.com/goart-dev/art/internal/protofield"
	"github.com/goart-dev/art/internal/track"
)

// numBuckets is the number of buckets of a histogram, of equal width.
const numBuckets = 30

// histograms returns the distributions over the trajectories: rewards, advantages, and the numbers of sampled tokens of
// a trajectory and of a reply; and that of the importance ratios of tokens. Those without a finite value are left out.
func histograms(g track.Groups) []value {
	var rewards, advantages, tokens, replies []float64
	for i, group := range g.Groups {
		if group == nil {
			continue
		}
		for j, t := range group.Trajectories {
			if t == nil {
				continue
			}
			rewards = append(rewards, t.Reward)
			if i < len(g.Advantages) && j < len(g.Advantages[i]) {
				advantages = append(advantages, g.Advantages[i][j])
			}
			sum := 0
			for _, s := range t.Samples() {
				replies = append(replies, float64(len(s.IDs)))
				sum += len(s.IDs)
			}
			if sum > 0 {
				tokens = append(tokens, float64(sum))
			}
		}
	}
	ratios := make([]float64, len(g.Ratios))
	for i, x := range g.Ratios {
		ratios[i] = float64(x)
	}
	var out []value
	for _, h := range []struct {
		name string
		data []float64
	}{
		{"rewards", rewards}, {"advantages", advantages}, {"importance_ratios", ratios}, {"tokens_of_trajectory", tokens},
		{"tokens_of_reply", replies},
	} {
		data := slices.DeleteFunc(h.data, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
		if len(data) > 0 {
			v := protofield.AppendBytes(nil, 1, []byte(g.Split+"/"+h.name))
			out = append(out, protofield.AppendBytes(v, 5, histogram(data)))
		}
	}
	return out
}

// histogram returns a HistogramProto of finite numbers, at least one.
func histogram(data []float64) []byte {
	low, high := slices.Min(data), slices.Max(data)
	var sum, squares float64
	counts := make([]float64, numBuckets)
	for _, x := range data {
		sum, squares = sum+x, squares+x*x
		bucket := 0
		if high > low {
			bucket = min(int((x-low)/(high-low)*numBuckets), numBuckets-1)
		}
		counts[bucket]++
	}
	limits := make([]float64, numBuckets)
	for i := range limits {
		limits[i] = low + (high-low)*float64(i+1)/numBuckets
	}
	if high == low { // one value: a bucket around it
		limits, counts = []float64{low + math.Max(math.Abs(low), 1)*1e-9}, []float64{float64(len(data))}
	}
	var b []byte
	for i, x := range []float64{low, high, float64(len(data)), sum, squares} {
		b = protofield.AppendDouble(b, protofield.Number(i+1), x)
	}
	return protofield.AppendDoubles(protofield.AppendDoubles(b, 6, limits), 7, counts)
}
