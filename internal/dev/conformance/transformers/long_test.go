package transformers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLong: thousands of tokens are computed as an implementation in float64 does, no worse than transformers does it
// in float32.
func TestLong(t *testing.T) {
	for _, r := range records(t, false) {
		if !r.Built {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			path := filepath.Join(r.Dir, "long.json")
			if _, err := os.Stat(path); err != nil {
				t.Log(python(t, "exact.py", r.Dir))
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var long struct {
				IDs       []int32
				Positions []int
			}
			require.NoError(t, json.Unmarshal(text, &long))
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
			results.worst(r.Family, "3100 tokens, transformers in float32", off)
			r.hold(t, "3100 tokens", max(closeLogits, off), apart(logits["exact"], got, v))
		})
	}
}
