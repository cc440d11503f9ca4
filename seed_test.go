package art_test

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// seedLog collects the seeds of requests, by the text of the last message.
type seedLog struct {
	mu    sync.Mutex
	seeds map[string]uint64
}

func (l *seedLog) reply(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seeds[req.Messages[len(req.Messages)-1].Content] = req.Settings.Seed
	return art.Assistant("x"), nil
}

// run is everything that the seeds of a gather may depend on.
type seedRun struct {
	seed, gather uint64
	steps        int
	concurrency  int
}

// seedsOf gathers 3 groups of 2 rollouts of 2 calls and returns the seed of each call.
func seedsOf(t *testing.T, r seedRun) map[string]uint64 {
	t.Helper()
	log := &seedLog{seeds: map[string]uint64{}}
	m := registered(t, &arttest.Backend{Reply: log.reply}, &art.ModelOptions{Seed: r.seed})
	for range r.steps {
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	_, err := art.GatherGroups(t.Context(), numbers(3), func(ctx context.Context, scenario int) (*art.Trajectory, error) {
		rollout := art.Rand(ctx).Uint64() // names the attempt
		tr := art.NewTrajectory()
		for call := range 2 {
			tr.Add(art.User(fmt.Sprint(scenario, rollout, call)))
			if _, err := m.Chat(ctx, tr, nil); err != nil {
				return nil, err
			}
		}
		return tr, nil
	}, &art.GatherOptions{GroupSize: 2, Concurrency: r.concurrency, Seed: r.gather})
	if err != nil {
		t.Fatal(err)
	}
	return log.seeds
}

// distinct counts the different seeds.
func distinct(runs ...map[string]uint64) int {
	all := map[uint64]bool{}
	for _, run := range runs {
		for _, seed := range run {
			all[seed] = true
		}
	}
	return len(all)
}

func TestSeeds_Gather(t *testing.T) {
	base := seedsOf(t, seedRun{seed: 1, gather: 2, concurrency: 1})
	if len(base) != 12 || distinct(base) != 12 {
		t.Fatalf("%d calls, %d seeds: %v", len(base), distinct(base), base)
	}
	wantEqual(t, "seeds at another concurrency", seedsOf(t, seedRun{seed: 1, gather: 2, concurrency: 6}), base)
	others := []map[string]uint64{
		base,
		seedsOf(t, seedRun{seed: 2, gather: 2, concurrency: 1}),
		seedsOf(t, seedRun{seed: 1, gather: 3, concurrency: 1}),
		seedsOf(t, seedRun{seed: 1, gather: 2, steps: 1, concurrency: 1}),
	}
	if n := distinct(others...); n != 48 {
		t.Errorf("%d different seeds, want 48: of another run, gather or step", n)
	}
}

// Outside of a gather the model counts its calls.
func TestSeeds_OutsideOfGather(t *testing.T) {
	ask := func() []uint64 {
		var seeds []uint64
		m := registered(t, &arttest.Backend{Reply: func(
			_ context.Context, _ *art.Model, req *art.ChatRequest,
		) (art.Message, error) {
			seeds = append(seeds, req.Settings.Seed)
			return art.Assistant("x"), nil
		}}, nil)
		for range 3 {
			if _, err := m.Chat(t.Context(), art.NewTrajectory(art.User("u")), nil); err != nil {
				t.Fatal(err)
			}
		}
		return seeds
	}
	first := ask()
	wantEqual(t, "seeds of a second process", ask(), first)
	if slices.Sort(first); len(slices.Compact(first)) != 3 {
		t.Errorf("seeds repeat: %v", first)
	}
}

// Gathers within rollouts differ from one another, and do not depend on timing.
func TestSeeds_NestedGather(t *testing.T) {
	draw := func(concurrency int) [][]float64 {
		groups, err := art.GatherGroups(t.Context(), numbers(3), func(ctx context.Context, _ int) (*art.Trajectory, error) {
			tr := rewarded(0)
			for range 2 {
				inner, err := art.Gather(ctx, numbers(1), func(ctx context.Context, _ int) (*art.Trajectory, error) {
					return rewarded(art.Rand(ctx).Float64()), nil
				}, nil)
				if err != nil {
					return nil, err
				}
				tr.Reward = tr.Reward*2 + inner.Trajectories[0].Reward
				tr.Logs = append(tr.Logs, fmt.Sprint(inner.Trajectories[0].Reward))
			}
			if tr.Logs[0] == tr.Logs[1] {
				t.Error("two gathers of one rollout have the same seed")
			}
			return tr, nil
		}, &art.GatherOptions{GroupSize: 2, Concurrency: concurrency})
		if err != nil {
			t.Fatal(err)
		}
		return rewards(groups)
	}
	one := draw(1)
	wantEqual(t, "draws at another concurrency", draw(6), one)
	all := slices.Concat(one...)
	if slices.Sort(all); len(slices.Compact(all)) != 6 {
		t.Errorf("rollouts have the same inner gathers: %v", one)
	}
}

func TestRand(t *testing.T) {
	type draws struct{ own, again, group uint64 }
	gather := func(seed uint64) (out []draws) {
		_, err := art.GatherGroups(t.Context(), numbers(2), func(ctx context.Context, _ int) (*art.Trajectory, error) {
			out = append(out, draws{art.Rand(ctx).Uint64(), art.Rand(ctx).Uint64(), art.GroupRand(ctx).Uint64()})
			return rewarded(0), nil
		}, &art.GatherOptions{GroupSize: 2, Concurrency: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	d := gather(1)
	if d[0].own != d[0].again {
		t.Error("Rand does not begin again")
	}
	own := map[uint64]bool{}
	for _, x := range append(d, gather(2)...) {
		own[x.own], own[x.group] = true, true
	}
	if len(own) != 8+4 { // rollouts and groups, all different
		t.Errorf("%d different draws, want 12", len(own))
	}
	if d[0].group != d[1].group || d[2].group != d[3].group || d[0].group == d[2].group {
		t.Errorf("draws of groups: %v", d)
	}
	wantEqual(t, "draws of the same seed", gather(1), d)
	outside := t.Context()
	if art.Rand(outside).Uint64() != art.Rand(outside).Uint64() ||
		art.GroupRand(outside).Uint64() != art.GroupRand(outside).Uint64() {
		t.Error("outside of a gather the source is not fixed")
	}
}

// Adjacent positions give unrelated numbers: each bit of the first draw is set about half of the time.
func TestRand_Spread(t *testing.T) {
	const n = 2000
	counts, flips := [64]int{}, 0
	var last uint64
	_, err := art.Gather(t.Context(), numbers(n), func(ctx context.Context, i int) (*art.Trajectory, error) {
		x := art.Rand(ctx).Uint64()
		for bit := range counts {
			counts[bit] += int(x >> bit & 1)
		}
		flips += bits.OnesCount64(x ^ last)
		last = x
		return rewarded(0), nil
	}, &art.GatherOptions{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	for bit, count := range counts {
		if count < n/2-150 || count > n/2+150 { // 6.7 standard deviations
			t.Errorf("bit %d is set in %d of %d draws", bit, count, n)
		}
	}
	if mean := float64(flips) / n; mean < 31 || mean > 33 {
		t.Errorf("%v bits differ from one draw to the next, want about 32", mean)
	}
}
