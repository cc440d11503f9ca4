package main

import "fmt"

// contest is what we and transformers measure alike, on the same GPU.
type contest struct {
	job, shape, weights, card string
	batch, prompt, tokens     int
}

func contestOf(r result) contest {
	return contest{r.Job, r.Shape, r.Weights, r.Card, r.Batch, r.Prompt, r.Tokens}
}

// rates are those of transformers, the best of each way: its generate, or a loop where that is measured too.
type rates struct{ best, loop float64 }

func peersOf(all []result) map[contest]rates {
	peers := map[contest]rates{}
	for _, r := range all {
		if r.Who != "transformers" {
			continue
		}
		best := peers[contestOf(r)]
		if r.Job == "decode" && r.How == "loop" {
			best.loop = max(best.loop, r.Rate)
		} else {
			best.best = max(best.best, r.Rate)
		}
		peers[contestOf(r)] = best
	}
	return peers
}

// times says how many times as fast a rate is.
func (p rates) times(rate float64) string {
	s := ""
	if p.best > 0 {
		s = fmt.Sprintf("%.2g", rate/p.best)
	}
	if p.loop > 0 {
		s += fmt.Sprintf(" (its loop: %.2g)", rate/p.loop)
	}
	return s
}
