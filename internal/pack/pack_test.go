package pack

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo/credit"
)

// trainedToken is a trained token with everything that predicts it.
type trainedToken struct {
	row, index             int
	target                 int32
	old, advantage, weight float32
	context                []int32
}

// tokensOf lists the trained tokens of sequences.
func tokensOf(seqs []credit.Sequence) []trainedToken {
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

// unpack lists the trained tokens of a micro-batch.
func unpack(b *MicroBatch) []trainedToken {
	var out []trainedToken
	tok := &b.Tokens
	for n := range tok.NumReal {
		row, column := int(tok.Position[n])/b.Length, int(tok.Position[n])%b.Length
		context := b.IDs[row*b.Length : row*b.Length+column+1]
		out = append(out, trainedToken{row, column + 1, tok.Target[n], tok.Old[n], tok.Advantage[n], tok.Weight[n], context})
	}
	return out
}

// layoutOf returns a layout that sequences fit into, with some padding.
func layoutOf(src *rand.Rand, seqs []credit.Sequence) Layout {
	l := Layout{Rows: len(seqs) + src.IntN(3), Trained: credit.NumTrained(seqs) + src.IntN(20), Length: 1}
	for i := range seqs {
		l.Length = max(l.Length, seqs[i].NumInputs()+src.IntN(2))
	}
	return l
}

func TestSequences_UnpackGivesInputBack(t *testing.T) {
	for seed := range uint64(200) {
		src := rand.New(rand.NewPCG(seed, 6))
		seqs := randomBatch(src, 1+src.IntN(12), 32)
		batch, err := Sequences(seqs, layoutOf(src, seqs))
		require.NoError(t, err)
		require.Equal(t, tokensOf(seqs), unpack(batch), "seed %d", seed)
	}
}

// TestSequences_Padding: everything that is not of a sequence is 0.
func TestSequences_Padding(t *testing.T) {
	for seed := range uint64(50) {
		src := rand.New(rand.NewPCG(seed, 7))
		seqs := randomBatch(src, 1+src.IntN(12), 32)
		layout := layoutOf(src, seqs)
		b, err := Sequences(seqs, layout)
		require.NoError(t, err)
		require.Len(t, b.IDs, layout.Tokens())
		for row := range layout.Rows {
			n := 0
			if row < len(seqs) {
				n = seqs[row].NumInputs()
			}
			padding := b.IDs[row*b.Length+n : (row+1)*b.Length]
			require.Equal(t, make([]int32, len(padding)), padding)
		}
		tok := b.Tokens
		require.Equal(t, credit.NumTrained(seqs), tok.NumReal)
		for i, m := range tok.Mask {
			require.Equal(t, i < tok.NumReal, m == 1)
		}
		free := layout.Trained - tok.NumReal
		for _, x := range [][]float32{tok.Old, tok.Advantage, tok.Weight, tok.Mask} {
			require.Equal(t, make([]float32, free), x[tok.NumReal:])
		}
		for _, x := range [][]int32{tok.Position, tok.Target} {
			require.Equal(t, make([]int32, free), x[tok.NumReal:])
		}
	}
}

// TestSequences_Logprobs: old and behavior are those of the sampler unless a sequence has its own, and shaping is added
// to the advantage.
func TestSequences_Logprobs(t *testing.T) {
	m, err := Sequences([]credit.Sequence{
		{IDs: []int32{1, 2, 3}, Trained: []bool{false, true, true}, Logprobs: []float32{0, -1, -2},
			Reference: []float32{9, -4, -5}, Advantage: 1, Shaping: []float64{0, 0.5, -0.25}},
		{IDs: []int32{1, 2}, Trained: []bool{false, true}, Logprobs: []float32{0, -9}, Old: []float32{0, -3},
			Behavior: []float32{0, -8}, Advantage: -1},
	}, Layout{Rows: 2, Length: 2, Trained: 4})
	require.NoError(t, err)
	require.Equal(t, []float32{1.5, 0.75, -1, 0}, m.Tokens.Advantage)
	require.Equal(t, []float32{-1, -2, -3, 0}, m.Tokens.Old)
	require.Equal(t, []float32{-1, -2, -8, 0}, m.Tokens.Behavior)
	require.Equal(t, []float32{-1, -2, -9, 0}, m.Tokens.Logprob)
	require.Equal(t, []float32{-4, -5, 0, 0}, m.Tokens.Reference)
}

func TestSequences_Errors(t *testing.T) {
	sequence := func(n int) credit.Sequence { // of which the model reads n tokens
		s := credit.Sequence{IDs: make([]int32, n+3), Trained: make([]bool, n+3), Logprobs: make([]float32, n+3)}
		s.Trained[n] = true
		return s
	}
	two := []credit.Sequence{sequence(3), sequence(8)}
	_, err := Sequences(two, Layout{Rows: 2, Length: 8, Trained: 2})
	require.NoError(t, err, "the last trained token is not read")
	for want, layout := range map[string]Layout{
		"sequence 1 needs 8 tokens, rows have 7":    {Rows: 2, Length: 7, Trained: 2},
		"2 sequences for 1 rows":                    {Rows: 1, Length: 8, Trained: 2},
		"2 trained tokens for a list of 1":          {Rows: 2, Length: 8, Trained: 1},
		"0 rows of 8 tokens, 2 of them trained":     {Rows: 0, Length: 8, Trained: 2},
		"a layout of 2 rows of 0 tokens, 2 of them": {Rows: 2, Length: 0, Trained: 2},
	} {
		_, err := Sequences(two, layout)
		require.ErrorContains(t, err, want)
	}
	_, err = Sequences([]credit.Sequence{{IDs: []int32{1}, Trained: []bool{true}, Logprobs: []float32{0}}},
		Layout{Rows: 1, Length: 1, Trained: 1})
	require.ErrorContains(t, err, "sequence 0: ")
}

func TestSequences_LeavesInputAlone(t *testing.T) {
	src := rand.New(rand.NewPCG(8, 8))
	seqs := randomBatch(src, 6, 32)
	before, layout := tokensOf(seqs), layoutOf(src, seqs)
	b, err := Sequences(seqs, layout)
	require.NoError(t, err)
	clear(b.IDs)
	clear(b.Tokens.Target)
	require.Equal(t, before, tokensOf(seqs))
	again, err := Sequences(seqs, layout)
	require.NoError(t, err)
	require.Equal(t, before, unpack(again))
}

func randomSequence(src *rand.Rand, n, trajectory int) credit.Sequence {
	s := credit.Sequence{
		IDs: make([]int32, n), Trained: make([]bool, n), Logprobs: make([]float32, n),
		Advantage: src.NormFloat64(), Weight: src.Float64(), Trajectory: trajectory,
	}
	for i := range n {
		s.IDs[i] = int32(1 + src.IntN(1000))
		s.Logprobs[i] = float32(math.NaN()) // not read where not trained
		if i > 0 && src.IntN(2) == 0 {
			s.Trained[i] = true
		}
	}
	s.Trained[1+src.IntN(n-1)] = true
	for i, trained := range s.Trained {
		if trained {
			s.Logprobs[i] = -float32(src.ExpFloat64())
		}
	}
	return s
}

// randomBatch returns sequences of up to length tokens, some trajectories with two histories.
func randomBatch(src *rand.Rand, count, length int) []credit.Sequence {
	seqs := make([]credit.Sequence, count)
	for i := range seqs {
		seqs[i] = randomSequence(src, 2+src.IntN(length-1), src.IntN(count/2+1))
	}
	return seqs
}
