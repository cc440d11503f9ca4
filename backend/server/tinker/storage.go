package tinker

import (
	"encoding/json"
	"net/http"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// checkMetadata refuses a request that writes more than is kept of it.
func (l *Limits) checkMetadata(req *tinkerwire.Request) error {
	n := metadataSize(req.Tags) + metadataSize(req.UserMetadata) + int64(len(req.ProjectID)+len(req.DisplayName))
	if n <= l.MetadataBytes {
		return nil
	}
	return failf(http.StatusRequestEntityTooLarge,
		"tags, user_metadata, display_name and project_id have %d bytes, want at most %d; keep less here", n, l.MetadataBytes)
}

// metadataSize is the length of JSON.
func metadataSize(v any) int64 {
	data, err := json.Marshal(v)
	if err != nil || string(data) == "null" { // it came from JSON
		return 0
	}
	return int64(len(data))
}

// runMetadata is how many times the metadata of one thing the weights of a run may have together: all are in one file.
const runMetadata = 16

// checkMetadata refuses metadata of further weights. mu is held.
func (r *run) checkMetadata(more map[string]any) error {
	n, limit := metadataSize(more), runMetadata*r.tenant.limits.MetadataBytes
	for i := range r.record.Checkpoints {
		n += metadataSize(r.record.Checkpoints[i].UserMetadata)
	}
	if n <= limit {
		return nil
	}
	return failf(http.StatusRequestEntityTooLarge,
		"the user_metadata of all saved weights of the run have %d bytes, want at most %d; delete some weights", n, limit)
}

// mayStore refuses further weights of a tenant that has too many.
func (t *tenant) mayStore(estimate int64) error {
	if t.stored.Take(estimate, 0) {
		return nil
	}
	return failf(http.StatusForbidden,
		"saved weights have %d bytes of %d; delete some (DELETE training_runs/RUN/checkpoints/KIND/NAME, or "+
			"delete_checkpoint of the SDK's RestClient), or let them expire", t.stored.Held(), t.stored.Limit())
}

// admitWeights takes the bytes that weights will have, by those that the run has saved before.
func (r *run) admitWeights() (estimate int64, err error) {
	estimate = 1
	r.mu.Lock()
	for i := range r.record.Checkpoints {
		estimate = max(estimate, r.record.Checkpoints[i].SizeBytes)
	}
	r.mu.Unlock()
	return estimate, r.tenant.mayStore(estimate)
}

// savesWeights reports whether an operation stores weights.
func savesWeights(op string) bool { return op == opSave || op == opSampler || op == opExternal }
