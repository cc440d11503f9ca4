package trainer

import (
	"sort"

	"github.com/goart-dev/art/grpo"
)

// fewShapes packs sorted sequences into micro-batches of few layouts: lengths are powers of two, numbers of rows are
// powers of four that are at least half full, and a quarter or all of the tokens can be trained.
func (t *Trainer) fewShapes(part []grpo.Sequence, limit int) ([]*grpo.MicroBatch, error) {
	var out []*grpo.MicroBatch
	for len(part) > 0 {
		length := powerLength(part[0].NumInputs())
		alike := sort.Search(len(part), func(i int) bool { return part[i].NumInputs() > length })
		rows := powerRows(alike, t.rows(length, limit))
		taken := part[:min(rows, alike)]
		layout := grpo.Layout{Rows: rows, Length: length, Trained: rows * length / 4}
		if grpo.NumTrained(taken) > layout.Trained {
			layout.Trained = layout.Tokens()
		}
		packed, err := grpo.Pack(taken, layout)
		if err != nil {
			return nil, err
		}
		out, part = append(out, packed), part[len(taken):]
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
