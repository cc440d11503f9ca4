package dataset

import (
	"slices"
	"testing"

	"github.com/goart-dev/art"
)

// TestStream_OrderOfBatches: the files of a stream have the order that art.Batches gives scenarios, in each epoch.
func TestStream_OrderOfBatches(t *testing.T) {
	files := []int{0, 1, 2, 3, 4, 5, 6}
	names := make([]string, len(files))
	for seed := range uint64(5) {
		s := &lineStream{files: names, opts: StreamOptions{Seed: seed, Shuffle: 100}}
		for batch := range art.Batches(files, &art.BatchOptions{Size: len(files), Epochs: 3, Seed: seed}) {
			if got := s.fileOrder(batch.Epoch); !slices.Equal(got, batch.Items) {
				t.Errorf("seed %d, epoch %d: order %v, want %v", seed, batch.Epoch, got, batch.Items)
			}
		}
	}
}
