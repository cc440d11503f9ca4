package trainer

import (
	"sort"

	"github.com/goart-dev/art/grpo"
)

// packFew cuts sorted sequences into micro-batches of few shapes: lengths are powers of two, and numbers of rows powers of
// four that are at least half full.
func (t *Trainer) packFew(part []grpo.Sequence, most int) ([]grpo.MicroBatch, error) {
	var out []grpo.MicroBatch
	for len(part) > 0 {
		length := powerLength(part[0].NumInputs())
		alike := sort.Search(len(part), func(i int) bool { return part[i].NumInputs() > length })
		limit := max(1, t.opts.MicroTokens/length)
		if most > 0 {
			limit = min(limit, most)
		}
		rows := powerRows(alike, limit)
		taken := min(rows, alike)
		packed, err := grpo.Pack(part[:taken], grpo.PackOptions{
			Buckets: []grpo.Bucket{{Length: length, Rows: rows}},
			Trained: []int{rows * length / 4}, // or all
		})
		if err != nil {
			return nil, err
		}
		out, part = append(out, packed...), part[taken:]
	}
	return out, nil
}

// powerLength is the power of two, at least 32, that n tokens are padded to.
func powerLength(n int) int {
	length := 32
	for length < n {
		length *= 2
	}
	return length
}

// powerRows is the largest power of four up to limit that n sequences fill by half.
func powerRows(n, limit int) int {
	rows := 1
	for 4*rows <= min(limit, 2*n) {
		rows *= 4
	}
	return rows
}
