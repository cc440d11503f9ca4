package grpo

import (
	"errors"
	"fmt"
	"slices"
)

// Bucket is a shape of micro-batches. Every shape is compiled once, so there should be few.
type Bucket struct {
	Length int // T: tokens that the model reads of a row
	Rows   int // B: sequences
}

// PackOptions say into which shapes sequences are packed.
type PackOptions struct {
	// Buckets in ascending order of Length. A sequence goes into the first that its inputs fit into.
	Buckets []Bucket
	// Trained are the sizes N that the number of trained tokens is padded to, ascending. What exceeds the last one is
	// padded to Rows*Length. nil is the powers of two from 16 on.
	Trained []int
	// PadID fills the positions behind a sequence and the rows without one. It must be in the vocabulary. Default 0.
	PadID int32
}

// Validate lists every problem.
func (o PackOptions) Validate() error {
	var errs []error
	if len(o.Buckets) == 0 {
		errs = append(errs, errors.New("grpo: no buckets to pack into"))
	}
	for i, b := range o.Buckets {
		if b.Length <= 0 || b.Rows <= 0 {
			errs = append(errs, fmt.Errorf("grpo: bucket %d has length %d and %d rows", i, b.Length, b.Rows))
		}
		if i > 0 && b.Length <= o.Buckets[i-1].Length {
			errs = append(errs, fmt.Errorf("grpo: bucket %d is not longer than the one before", i))
		}
	}
	for i, n := range o.Trained {
		if n <= 0 || i > 0 && n <= o.Trained[i-1] {
			errs = append(errs, fmt.Errorf("grpo: sizes of trained tokens %v are not ascending", o.Trained))
			break
		}
	}
	return errors.Join(errs...)
}

// MicroBatch is a padded rectangle of sequences, and a flat list of the tokens trained in it. Rows are left-aligned;
// with causal attention nothing depends on the padding behind them.
type MicroBatch struct {
	Bucket              // T = Length, B = Rows
	IDs      []int32    // [B*T] row-major
	Lengths  []int32    // [B] tokens in the row that are not padding; 0 for a row without sequence
	Sequence []int      // [B] index of the sequence in the call to Pack, -1 for a row without
	Tokens   TokenBatch // [N]
}

// TokenBatch lists trained tokens, row by row in the order of the sequence, then padding of Mask 0.
type TokenBatch struct {
	Position  []int32   // [N] flat index in [B*T] of the token before, whose hidden state predicts this one
	Target    []int32   // [N] id of the token
	Old       []float32 // [N] its logprob when it was sampled
	Advantage []float32 // [N]
	Weight    []float32 // [N]
	Mask      []float32 // [N] 1 for a token, 0 for padding
	Behind    []int     // [N] steps from the policy that sampled it to the one being trained; no loss depends on it
	NumReal   int       // tokens that are not padding; they come first
}

// Pack lays sequences out in micro-batches: every trained token is in exactly one of them, and with it everything
// before it in its sequence. What follows the last trained token of a sequence is left out.
//
// The result depends on the order of the sequences only. Micro-batches come by ascending bucket, rows in the order of
// the sequences. The last micro-batch of a bucket may be partly empty; its sequences move into free rows of a longer
// bucket where they all fit.
func Pack(seqs []Sequence, opts PackOptions) ([]MicroBatch, error) {
	if err := errors.Join(opts.Validate(), validateAll(seqs)); err != nil {
		return nil, err
	}
	byBucket, err := sortIntoBuckets(seqs, opts.Buckets)
	if err != nil {
		return nil, err
	}
	fillFreeRows(byBucket, opts.Buckets)
	var batches []MicroBatch
	for b, members := range byBucket {
		for rows := range slices.Chunk(members, opts.Buckets[b].Rows) {
			batches = append(batches, newMicroBatch(seqs, rows, opts.Buckets[b], opts))
		}
	}
	return batches, nil
}

// sortIntoBuckets returns the indices of the sequences of each bucket.
func sortIntoBuckets(seqs []Sequence, buckets []Bucket) ([][]int, error) {
	byBucket := make([][]int, len(buckets))
	for i := range seqs {
		n := seqs[i].NumInputs()
		b := slices.IndexFunc(buckets, func(b Bucket) bool { return b.Length >= n })
		if b < 0 {
			return nil, fmt.Errorf("grpo: sequence %d needs %d tokens, the longest bucket has %d; drop it or add a bucket",
				i, n, buckets[len(buckets)-1].Length)
		}
		byBucket[b] = append(byBucket[b], i)
	}
	return byBucket, nil
}

// fillFreeRows moves the sequences of a partly empty micro-batch into rows of a longer bucket that would be empty.
func fillFreeRows(byBucket [][]int, buckets []Bucket) {
	for b := range buckets {
		left := len(byBucket[b]) % buckets[b].Rows
		for to := b + 1; to < len(buckets) && left > 0; to++ {
			used := len(byBucket[to]) % buckets[to].Rows
			if used == 0 || used+left > buckets[to].Rows {
				continue
			}
			keep := len(byBucket[b]) - left
			byBucket[to] = append(byBucket[to], byBucket[b][keep:]...)
			slices.Sort(byBucket[to])
			byBucket[b] = byBucket[b][:keep]
			left = 0
		}
	}
}

// newMicroBatch lays out the sequences with the given indices.
func newMicroBatch(seqs []Sequence, rows []int, bucket Bucket, opts PackOptions) MicroBatch {
	batch := MicroBatch{
		Bucket:   bucket,
		IDs:      slices.Repeat([]int32{opts.PadID}, bucket.Rows*bucket.Length),
		Lengths:  make([]int32, bucket.Rows),
		Sequence: slices.Repeat([]int{-1}, bucket.Rows),
	}
	for row, i := range rows {
		seq, start := &seqs[i], row*bucket.Length
		batch.Sequence[row] = i
		batch.Lengths[row] = int32(copy(batch.IDs[start:start+bucket.Length], seq.IDs[:seq.NumInputs()]))
		batch.Tokens.add(seq, start)
	}
	batch.Tokens.pad(trainedSize(batch.Tokens.NumReal, bucket, opts.Trained))
	return batch
}

// add appends the trained tokens of a sequence whose first token has flat index start.
func (t *TokenBatch) add(seq *Sequence, start int) {
	for i, trained := range seq.Trained {
		if !trained {
			continue
		}
		t.Position = append(t.Position, int32(start+i-1))
		t.Target = append(t.Target, seq.IDs[i])
		t.Old = append(t.Old, seq.Logprobs[i])
		t.Advantage = append(t.Advantage, float32(seq.Advantage))
		t.Weight = append(t.Weight, float32(seq.Weight))
		t.Mask = append(t.Mask, 1)
		behind := 0
		if seq.Behind != nil {
			behind = seq.Behind[i]
		}
		t.Behind = append(t.Behind, behind)
		t.NumReal++
	}
}

// pad brings every list to length n with zeros.
func (t *TokenBatch) pad(n int) {
	ints, floats := make([]int32, n-t.NumReal), make([]float32, n-t.NumReal)
	t.Position, t.Target = append(t.Position, ints...), append(t.Target, ints...)
	t.Old, t.Advantage = append(t.Old, floats...), append(t.Advantage, floats...)
	t.Weight, t.Mask = append(t.Weight, floats...), append(t.Mask, floats...)
	t.Behind = append(t.Behind, make([]int, n-t.NumReal)...)
}

// minTrained is the smallest size that trained tokens are padded to by default.
const minTrained = 16

// trainedSize returns the padded number of n trained tokens.
func trainedSize(n int, bucket Bucket, sizes []int) int {
	whole := bucket.Rows * bucket.Length // no micro-batch has more
	if sizes == nil {
		for size := minTrained; size < whole; size *= 2 {
			if size >= n {
				return size
			}
		}
		return whole
	}
	if i, _ := slices.BinarySearch(sizes, n); i < len(sizes) {
		return min(sizes[i], whole)
	}
	return whole
}
