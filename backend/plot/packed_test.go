package plot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/pack"
)

// sequence trains on the tokens at some places.
func sequence(ids []int32, trained ...int) credit.Sequence {
	s := credit.Sequence{IDs: ids, Trained: make([]bool, len(ids)), Logprobs: make([]float32, len(ids)), Weight: 1}
	for _, at := range trained {
		s.Trained[at] = true
	}
	return s
}

// branches are four sequences that share what they begin with.
func branches(t *testing.T) *pack.MicroBatch {
	t.Helper()
	layout := pack.Layout{Rows: 1, Length: 8, Trained: 8}
	layout.Branches[0] = pack.Branches{Rows: 2, Length: 4, Keys: 8}
	m, err := pack.Rows([]credit.Sequence{
		sequence([]int32{1, 2, 3, 4, 5, 6, 7}, 3, 6), sequence([]int32{1, 2, 3, 9}, 3),
		sequence([]int32{1, 2, 3, 4, 8, 8, 8}, 5, 6), sequence([]int32{1, 2, 3, 4, 8, 9}, 5),
	}, []pack.Row{
		{Sequence: 0, End: 6}, {Sequence: 1, From: 0, Start: 3, End: 3},
		{Sequence: 2, From: 0, Start: 4, End: 6, Rectangle: 1}, {Sequence: 3, From: 2, Start: 5, End: 5},
	}, layout)
	require.NoError(t, err)
	return m
}

// alone is a sequence that shares nothing, in some rows.
func alone(t *testing.T, rows, length int) *pack.MicroBatch {
	t.Helper()
	m, err := pack.Sequences([]credit.Sequence{sequence(make([]int32, length), length-1)},
		pack.Layout{Rows: rows, Length: length, Trained: 1})
	require.NoError(t, err)
	return m
}

// What several sequences read is shared, also where one lies in the row of another and has none of its own.
func TestPacked_Parts(t *testing.T) {
	p := &Packed{Updates: [][]*pack.MicroBatch{{branches(t)}, {alone(t, 1, 3), alone(t, 2, 4)}}}
	require.Equal(t, []part{
		{"update 1, micro-batch 1: 16 tokens, 6 trained", []rectangle{
			{1, 8, []span{{0, 0, 4, shared}, {0, 4, 6, read}, {0, 2, 3, trained}, {0, 5, 6, trained}, {0, 2, 3, trained}}},
			{2, 4, []span{{0, 0, 1, shared}, {0, 1, 2, read}, {0, 0, 2, trained}, {0, 0, 1, trained}}},
		}},
		{"update 2, micro-batch 1: 3 tokens, 1 trained", []rectangle{{1, 3, []span{{0, 0, 2, read}, {0, 1, 2, trained}}}}},
		{"update 2, micro-batch 2: 8 tokens, 1 trained", []rectangle{{2, 4, []span{{0, 0, 3, read}, {0, 2, 3, trained}}}}},
	}, p.parts())
}
