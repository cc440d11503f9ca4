package art

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync/atomic"
)

// position says where in a gather some code runs. It identifies a rollout independently of timing.
type position struct {
	seed                uint64 // of the gather
	group, attempt, try int
	calls               atomic.Uint64 // made so far from this rollout
	rollout             *RolloutStart // of its events
}

type positionKey struct{}

func positionOf(ctx context.Context) *position {
	p, _ := ctx.Value(positionKey{}).(*position)
	return p
}

// Purposes of seeds. Each purpose has its own random stream.
const (
	seedCall uint64 = iota + 1 // sampling of one call in a gather
	seedLone                   // sampling of one call outside of a gather
	seedRollout
	seedGroup
	seedNested // gather within a gather
	seedBackoff
	seedShuffle
	seedChoice // of the replies to one request, but the first
	seedJob    // of a scenario, in a pipeline
)

// callSeed derives the seed of one completion from the run's seed, the step, and the position in the gather of ctx. The
// position counts the calls of its rollout; the model counts those outside of a gather.
func (m *Model) callSeed(ctx context.Context) uint64 {
	run, step := m.opts.Seed, uint64(m.answers(ctx))
	p := positionOf(ctx)
	if p == nil {
		return mix(seedLone, run, step, m.calls.Add(1))
	}
	return mix(seedCall, run, step, p.id(), p.calls.Add(1))
}

// id hashes the path of the rollout.
func (p *position) id() uint64 {
	return mix(seedRollout, p.seed, uint64(p.group), uint64(p.attempt), uint64(p.try))
}

// gatherSeed returns the seed of a gather that starts under ctx. Within a rollout it also depends on the rollout:
// otherwise the nested gathers of all rollouts would be the same.
func gatherSeed(ctx context.Context, seed uint64) uint64 {
	p := positionOf(ctx)
	if p == nil {
		return seed
	}
	return mix(seedNested, seed, p.id(), p.calls.Add(1))
}

// Rand returns a source of randomness for the environment of a rollout. It depends only on the seed of the gather, the
// group, the attempt and the retry, so that a rollout can be repeated. Each call returns the same sequence from its
// beginning: call it once in a rollout.
//
// Outside of a gather it is a source with a fixed seed.
func Rand(ctx context.Context) *rand.Rand { return newRand(cmp.Or(positionOf(ctx), &position{}).id()) }

// GroupRand is [Rand], but the same for all attempts of a group: for an environment in which all attempts of a scenario
// must see the same random draws.
func GroupRand(ctx context.Context) *rand.Rand {
	p := cmp.Or(positionOf(ctx), &position{})
	return newRand(mix(seedGroup, p.seed, uint64(p.group)))
}

// newRand spreads a seed over the state of a generator.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(mix(seed, 1), mix(seed, 2))) }

// mix hashes a sequence of numbers. Sequences that differ in an element, in order or in length give unrelated results.
func mix(path ...uint64) uint64 {
	h := uint64(len(path))
	for _, x := range path {
		h = scramble(h ^ scramble(x))
	}
	return h
}

// scramble is the output function of SplitMix64 (Steele, Lea, Flood 2014) after one step of its counter: a bijection in
// which every input bit flips each output bit with probability close to a half.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
