package grpo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var testBuckets = PackOptions{Buckets: []Bucket{{8, 4}, {16, 3}, {32, 1}}, PadID: 7}

// trainedToken is a trained token with everything that predicts it.
type trainedToken struct {
	sequence, index        int
	target                 int32
	old, advantage, weight float32
	context                []int32
}

// tokensOf lists the trained tokens of sequences.
func tokensOf(seqs []Sequence) []trainedToken {
	var out []trainedToken
	for i, s := range seqs {
		for j, trained := range s.Trained {
			if trained {
				out = append(out, trainedToken{i, j, s.IDs[j], s.Logprobs[j], float32(s.Advantage), float32(s.Weight), s.IDs[:j]})
			}
		}
	}
	return out
}

// unpack lists the trained tokens of micro-batches, by sequence.
func unpack(t *testing.T, batches []MicroBatch) []trainedToken {
	var out []trainedToken
	for _, b := range batches {
		for n := range b.Tokens.NumReal {
			tok := b.Tokens
			row, column := int(tok.Position[n])/b.Length, int(tok.Position[n])%b.Length
			require.Less(t, column, int(b.Lengths[row]), "position in the padding")
			context := b.IDs[row*b.Length : row*b.Length+column+1]
			out = append(out, trainedToken{b.Sequence[row], column + 1, tok.Target[n], tok.Old[n], tok.Advantage[n], tok.Weight[n], context})
			require.Equal(t, float32(1), tok.Mask[n])
		}
	}
	slices.SortStableFunc(out, func(a, b trainedToken) int { return a.sequence - b.sequence })
	return out
}

func TestPack_UnpackGivesInputBack(t *testing.T) {
	for seed := range uint64(200) {
		src := rand.New(rand.NewPCG(seed, 6))
		seqs := randomBatch(src, 1+src.IntN(12), 32)
		batches, err := Pack(seqs, testBuckets)
		require.NoError(t, err)
		require.Equal(t, tokensOf(seqs), unpack(t, batches), "seed %d", seed)
	}
}

func TestPack_ShapesAndPadding(t *testing.T) {
	for seed := range uint64(50) {
		src := rand.New(rand.NewPCG(seed, 7))
		seqs := randomBatch(src, 1+src.IntN(12), 32)
		batches, err := Pack(seqs, testBuckets)
		require.NoError(t, err)
		seen := make([]int, len(seqs))
		for _, b := range batches {
			require.Contains(t, testBuckets.Buckets, b.Bucket)
			require.Len(t, b.IDs, b.Rows*b.Length)
			for row, i := range b.Sequence {
				padding := b.IDs[row*b.Length+int(b.Lengths[row]) : (row+1)*b.Length]
				require.Equal(t, slices.Repeat([]int32{7}, len(padding)), padding)
				if i < 0 {
					require.Zero(t, b.Lengths[row])
					continue
				}
				seen[i]++
				require.EqualValues(t, seqs[i].NumInputs(), b.Lengths[row])
			}
			tok := b.Tokens
			n := len(tok.Mask)
			require.Contains(t, []int{16, 32, 48}, n, "sizes are powers of two, or the whole rectangle")
			require.Less(t, tok.NumReal, n+1)
			require.Positive(t, tok.NumReal)
			for _, x := range [][]float32{tok.Old, tok.Advantage, tok.Weight, tok.Mask} {
				require.Len(t, x, n)
				require.Equal(t, make([]float32, n-tok.NumReal), x[tok.NumReal:])
			}
			for _, x := range [][]int32{tok.Position, tok.Target} {
				require.Len(t, x, n)
				require.Equal(t, make([]int32, n-tok.NumReal), x[tok.NumReal:])
			}
		}
		require.Equal(t, slices.Repeat([]int{1}, len(seqs)), seen, "seed %d: each sequence once", seed)
	}
}

// sequenceOfInputs returns a sequence of which the model reads n tokens.
func sequenceOfInputs(n int) Sequence {
	s := Sequence{IDs: make([]int32, n+3), Trained: make([]bool, n+3), Logprobs: make([]float32, n+3)}
	s.Trained[n] = true
	return s
}

func TestPack_ChoosesBuckets(t *testing.T) {
	pack := func(lengths ...int) [][]int {
		var seqs []Sequence
		for _, n := range lengths {
			seqs = append(seqs, sequenceOfInputs(n))
		}
		batches, err := Pack(seqs, testBuckets)
		require.NoError(t, err)
		var rows [][]int
		for _, b := range batches {
			rows = append(rows, append([]int{b.Length}, b.Sequence...))
		}
		return rows
	}
	require.Equal(t, [][]int{{8, 0, -1, -1, -1}}, pack(8), "the last trained token is not read")
	require.Equal(t, [][]int{{16, 0, -1, -1}}, pack(9))
	require.Equal(t, [][]int{{32, 0}, {32, 1}}, pack(32, 17))
	require.Equal(t, [][]int{{8, 0, 1, 2, 3}, {8, 4, -1, -1, -1}}, pack(1, 2, 3, 4, 5))
	require.Equal(t, [][]int{{16, 0, 1, 2}}, pack(1, 16, 2), "free rows of a longer bucket are filled, in order")
	require.Equal(t, [][]int{{8, 0, 2, 3, 4}, {16, 1, 5, -1}}, pack(1, 16, 1, 1, 1, 1), "a full micro-batch stays")
	require.Equal(t, [][]int{{8, 0, 2, 3, -1}, {16, 1, -1, -1}}, pack(1, 16, 1, 1), "three do not fit into two free rows")
	require.Empty(t, pack())
}

func TestPack_TrainedSizes(t *testing.T) {
	big := Bucket{Length: 100, Rows: 10}
	for _, c := range []struct {
		n     int
		sizes []int
		want  int
	}{
		{1, nil, 16}, {16, nil, 16}, {17, nil, 32}, {512, nil, 512}, {513, nil, 1000}, {1000, nil, 1000},
		{1, []int{50, 200}, 50}, {51, []int{50, 200}, 200}, {200, []int{50, 200}, 200}, {201, []int{50, 200}, 1000},
		{7, []int{5000}, 1000},
	} {
		require.Equal(t, c.want, trainedSize(c.n, big, c.sizes), "%+v", c)
	}
	require.Equal(t, 3, trainedSize(2, Bucket{Length: 3, Rows: 1}, nil))
}

func TestPack_Errors(t *testing.T) {
	_, err := Pack([]Sequence{sequenceOfInputs(3), sequenceOfInputs(33)}, testBuckets)
	require.ErrorContains(t, err, "sequence 1 needs 33 tokens, the longest bucket has 32")
	_, err = Pack(nil, PackOptions{})
	require.ErrorContains(t, err, "no buckets")
	bad := PackOptions{Buckets: []Bucket{{8, 1}, {8, 0}}, Trained: []int{4, 4}}
	_, err = Pack(nil, bad)
	for _, want := range []string{"bucket 1 has length 8 and 0 rows", "bucket 1 is not longer", "not ascending"} {
		require.ErrorContains(t, err, want)
	}
	_, err = Pack([]Sequence{{IDs: []int32{1}, Trained: []bool{true}, Logprobs: []float32{0}}}, testBuckets)
	require.ErrorContains(t, err, "sequence 0: ")
}

func TestPack_LeavesInputAlone(t *testing.T) {
	seqs := randomBatch(rand.New(rand.NewPCG(8, 8)), 6, 32)
	before := tokensOf(seqs)
	batches, err := Pack(seqs, testBuckets)
	require.NoError(t, err)
	for _, b := range batches {
		clear(b.IDs)
		clear(b.Tokens.Target)
	}
	require.Equal(t, before, tokensOf(seqs))
	again, err := Pack(seqs, testBuckets)
	require.NoError(t, err)
	require.Equal(t, before, unpack(t, again))
}
