package transformers

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLong: thousands of tokens are computed as an implementation in float64 does, no worse than transformers does it
// in float32.
func TestLong(t *testing.T) {
	for _, r := range deepOnes(t, "exact.py", "long.json") {
		t.Run(r.Name, func(t *testing.T) {
			var long struct {
				IDs       []int32
				Positions []int
			}
			r.readJSON(t, "long.json", &long)
			logits := readTensors(t, filepath.Join(r.Dir, "long.safetensors"))
			m := open(t, r.Dir)
			v := m.weights.Config.VocabSize
			all, err := m.logprobs(nil, long.IDs)
			require.NoError(t, err)
			var got, theirs []float32
			for i, at := range long.Positions {
				got = append(got, all[at*v:(at+1)*v]...)
				theirs = append(theirs, logits["theirs"][i*v:(i+1)*v]...)
			}
			off := apart(logits["exact"], narrow(logSoftmax(theirs, v)), v)
			results.worst(r.Family, "of transformers", off)
			r.hold(t, "3,001 tokens", max(closeLogits, off), apart(logits["exact"], got, v))
		})
	}
}
