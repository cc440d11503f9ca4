package art_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goart-dev/art"
)

// take returns the first n batches.
func take[S any](n int, scenarios []S, opts *art.BatchOptions) []art.Batch[S] {
	var out []art.Batch[S]
	for b := range art.Batches(scenarios, opts) {
		if out = append(out, b); len(out) == n {
			break
		}
	}
	return out
}

func TestBatches_InOrder(t *testing.T) {
	got := take(99, []string{"a", "b", "c"}, &art.BatchOptions{Size: 2, Epochs: 2, InOrder: true})
	wantEqual(t, "batches", got, []art.Batch[string]{
		{Step: 0, Epoch: 0, EpochStep: 0, Items: []string{"a", "b"}},
		{Step: 1, Epoch: 0, EpochStep: 1, Items: []string{"c"}},
		{Step: 2, Epoch: 1, EpochStep: 0, Items: []string{"a", "b"}},
		{Step: 3, Epoch: 1, EpochStep: 1, Items: []string{"c"}},
	})
}

func TestBatches_Defaults(t *testing.T) {
	got := take(99, numbers(20), nil)
	var order []int
	for i, b := range got {
		if b.Step != i || b.EpochStep != i || b.Epoch != 0 || len(b.Items) != 1 {
			t.Errorf("batch %d: %+v", i, b)
		}
		order = append(order, b.Items...)
	}
	if slices.IsSorted(order) {
		t.Error("not shuffled")
	}
	if slices.Sort(order); !slices.Equal(order, numbers(20)) {
		t.Errorf("items: %v", order)
	}
	wantEqual(t, "batches of zero and less", take(99, numbers(20), &art.BatchOptions{Size: -1, Start: -5}), got)
}

func TestBatches_Shuffle(t *testing.T) {
	epochs := take(3, numbers(20), &art.BatchOptions{Size: 20, Epochs: 3, Seed: 1})
	if slices.Equal(epochs[0].Items, epochs[1].Items) || slices.Equal(epochs[1].Items, epochs[2].Items) {
		t.Errorf("epochs have the same order: %v", epochs)
	}
	if other := take(1, numbers(20), &art.BatchOptions{Size: 20, Seed: 2}); slices.Equal(other[0].Items, epochs[0].Items) {
		t.Error("seeds have the same order")
	}
}

func TestBatches_Forever(t *testing.T) {
	got := take(1000, numbers(3), &art.BatchOptions{Size: 2, Epochs: -1})
	if last := got[len(got)-1]; len(got) != 1000 || last.Step != 999 || last.Epoch != 499 || last.EpochStep != 1 {
		t.Errorf("%d batches, the last is %+v", len(got), last)
	}
	if none := take(1, []int{}, &art.BatchOptions{Epochs: -1}); none != nil {
		t.Errorf("batches of nothing: %v", none)
	}
	if huge := take(2, numbers(3), &art.BatchOptions{Size: math.MaxInt}); len(huge) != 1 || len(huge[0].Items) != 3 {
		t.Errorf("batches of the greatest size: %v", huge)
	}
}

// Started at step k, a sequence is the tail of the whole one.
func TestBatches_ResumeProperty(t *testing.T) {
	const seed = 3
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		n := 1 + r.IntN(12)
		opts := art.BatchOptions{Size: 1 + r.IntN(5), Epochs: 1 + r.IntN(4), Seed: r.Uint64(), InOrder: r.IntN(4) == 0}
		whole := take(math.MaxInt, numbers(n), &opts)
		opts.Start = r.IntN(len(whole) + 3)
		want := whole[min(opts.Start, len(whole)):]
		if got := take(math.MaxInt, numbers(n), &opts); len(got)+len(want) > 0 {
			wantEqual(t, "tail", got, want)
		}
	}
}
