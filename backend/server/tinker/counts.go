package tinker

import (
	"net/http"

	"github.com/goart-dev/art/backend/server/internal/jsoncount"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// What no client sends more of, whatever the limits of its tenant are.
const (
	maxInputs  = 8    // tensors of a datum
	maxChunks  = 64   // of a datum, on average
	maxOptions = 64   // of a loss
	maxStops   = 256  // texts or tokens that end a sample
	maxTags    = 256  // of a session
	maxOther   = 4096 // elements of lists that have no limit of their own
)

// bounds are the counts of a forward pass in protobuf.
func (l *Limits) bounds() tinkerwire.Bounds {
	return tinkerwire.Bounds{
		Data: l.Datums, Chunks: maxChunks * l.Datums, Tensors: maxInputs * l.Datums, Options: 2 * maxOptions, // in two maps
	}
}

// forwardCounts are the same for JSON, where numbers take more memory than in the body.
func (l *Limits) forwardCounts() *jsoncount.Limits {
	return &jsoncount.Limits{
		Lists: map[string]int{
			"forward_backward_input.data": l.Datums, "forward_input.data": l.Datums, "chunks": maxChunks * l.Datums,
			"tokens": l.Tokens, "loss_fn_inputs": maxInputs * l.Datums, "data": maxInputs * l.Tokens,
			"shape": 2 * maxInputs * l.Datums, "sparse_crow_indices": l.Tokens + l.Datums, "sparse_col_indices": l.Tokens,
		},
		Trees: map[string]int{"loss_fn_config": maxOptions}, Other: maxOther,
	}
}

// sampleCounts are the counts of asample.
func (l *Limits) sampleCounts() *jsoncount.Limits {
	return &jsoncount.Limits{
		Lists: map[string]int{
			"chunks": maxChunks * l.Datums, "tokens": l.Tokens, "stop": maxStops, "data": l.Tokens,
			"sparse_crow_indices": l.Tokens, "sparse_col_indices": l.Tokens,
		},
		Other: maxOther,
	}
}

// smallCounts are those of other requests. Metadata is bounded in bytes, too.
var smallCounts = &jsoncount.Limits{
	Lists: map[string]int{"tags": maxTags}, Trees: map[string]int{"user_metadata": 1 << 14}, Other: maxOther,
}

// checkCounts refuses a body that has too much of something, before it is decoded.
func checkCounts(counts *jsoncount.Limits, body []byte) error {
	if err := counts.Check(body); err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	return nil
}
