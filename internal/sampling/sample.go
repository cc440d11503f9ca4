// Package sampling draws tokens from the distributions that a model predicts: on the host, and in graphs.
package sampling

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// Settings reshape the distribution that tokens are drawn from: bias and penalties, then temperature, min-p, top-k and
// top-p, each renormalised, in the order of vLLM.
type Settings struct {
	Temperature float64 // 0 is greedy
	TopP        float64 // nucleus sampling; 1 is off
	TopK        int     // 0 is off
	// MinP drops tokens less likely than MinP times the likeliest (Nguyen et al. 2024). 0 is off.
	MinP float64
	Penalties
}

// Reshapes reports whether the distribution differs from the model's own.
func (s Settings) Reshapes() bool {
	return s.Temperature != 1 || s.TopP < 1 || s.TopK > 0 || s.MinP > 0 || s.Adjusts()
}

// Sample draws the token at position index of the completion that has the given seed. logprobs is a log-softmax over
// the vocabulary, on which [Penalties.Adjust] has worked where there are any: it need not be normalised any more.
// sampled is the logprob of the token under the reshaped distribution. A draw depends on its arguments alone. Ties go
// to the smaller id.
func Sample(logprobs []float32, s Settings, seed uint64, index int) (id int32, sampled float32) {
	if s.Temperature == 0 {
		return argmax(logprobs), 0
	}
	best := float64(largest(logprobs))
	memory := weightsMemory.Get().(*[]float64)
	defer weightsMemory.Put(memory)
	weights := slices.Grow((*memory)[:0], len(logprobs))[:len(logprobs)]
	*memory = weights
	sums, total := weighBlocks(weights, logprobs, best, s.Temperature)
	if s.MinP > 0 {
		for i, w := range weights { // relative to the largest, which is 1
			if w < s.MinP {
				weights[i] = 0
			}
		}
	}
	if s.TopK > 0 || s.TopP < 1 {
		truncate(weights, logprobs, s)
	}
	if s.MinP > 0 || s.TopK > 0 || s.TopP < 1 {
		sums, total = blockSums(weights)
	}
	id = pick(weights, sums, Uniform(seed, index)*total)
	return id, float32(math.Log(weights[id] / total))
}

// Plain is [Sample] for a log-softmax as it is: at temperature 1, with nothing truncated or barred. It computes
// probabilities up to the token that is drawn, and no others: the tokens of most texts are among the first of a
// vocabulary. Up to rounding they have 1 together; where the random number exceeds their sum, Sample draws.
func Plain(logprobs []float32, seed uint64, index int) int32 {
	left, weights := Uniform(seed, index), make([]float64, block)
	for i := 0; i < len(logprobs); i += block {
		part := logprobs[i:min(i+block, len(logprobs))]
		weights = weights[:len(part)]
		sums, total := weighBlocks(weights, part, 0, 1)
		if left < total {
			return int32(i) + pick(weights, sums, left)
		}
		left -= total
	}
	id, _ := Sample(logprobs, Settings{Temperature: 1, TopP: 1}, seed, index)
	return id
}

// weightsMemory is memory for the weights of a vocabulary, as []float64: a megabyte for each token, used again.
var weightsMemory = sync.Pool{New: func() any { return new([]float64) }}

// Uniform returns the number in [0, 1) that decides a draw of [Sample].
func Uniform(seed uint64, index int) float64 {
	return rand.New(rand.NewPCG(seed, uint64(index))).Float64()
}

func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}

// block is how many weights are added up at a time.
const block = 256

func blockSums(weights []float64) (sums []float64, total float64) {
	sums = make([]float64, 0, (len(weights)+block-1)/block)
	for part := range slices.Chunk(weights, block) {
		sum := addUp(part, [4]float64{})
		sums, total = append(sums, sum), total+sum
	}
	return sums, total
}

// pick returns the first index at which the cumulative sum exceeds u, or, by rounding, the last one with weight.
func pick(weights, sums []float64, u float64) int32 {
	last := -1
	for b, sum := range sums {
		if u >= sum && b < len(sums)-1 {
			u -= sum
			continue
		}
		for i := b * block; i < min((b+1)*block, len(weights)); i++ {
			if u -= weights[i]; weights[i] > 0 {
				if last = i; u < 0 {
					return int32(i)
				}
			}
		}
	}
	if last < 0 { // all weight is in blocks that were passed over
		for last = len(weights) - 1; weights[last] == 0; last-- {
		}
	}
	return int32(last)
}

// weigh sets weights to the probabilities relative to the best one, a block at a time, which stays in the L1 cache, and
// returns what blockSums returns of them.
func weighBlocks(weights []float64, logprobs []float32, best, temperature float64) (sums []float64, total float64) {
	sums = make([]float64, 0, (len(weights)+block-1)/block)
	scale := min(math.Log2E/temperature, math.MaxFloat64)
	for part := range slices.Chunk(weights, block) {
		sum := weigh(part, logprobs[:len(part)], best, scale)
		sums, total = append(sums, sum), total+sum
		logprobs = logprobs[len(part):]
	}
	return sums, total
}

// truncate sets weights outside of top-k and top-p to zero, by logprobs: at a high temperature weights may be equal.
func truncate(weights []float64, logprobs []float32, s Settings) {
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case logprobs[a] > logprobs[b]:
			return -1
		case logprobs[a] < logprobs[b]:
			return 1
		}
		return 0
	})
	keep := len(order)
	if s.TopK > 0 {
		keep = min(keep, s.TopK)
	}
	total := 0.0
	for _, i := range order[:keep] {
		total += weights[i]
	}
	sum := 0.0
	for n, i := range order[:keep] {
		if sum += weights[i]; sum >= s.TopP*total {
			keep = n + 1
			break
		}
	}
	for _, i := range order[keep:] {
		weights[i] = 0
	}
}
