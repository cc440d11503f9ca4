package tinker

import (
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// StatusError is the error of an answer.
func StatusError(status int, detail string) error {
	return new(Backend).broken("forward_backward", &statusError{status, detail})
}

// Convert is a datum on the wire, for a service with the extensions of ours or without them.
func Convert(d *loop.Datum, loss credit.Loss, extended bool) (tinkerwire.Datum, error) {
	return convert(d, loss, &limits{PolicyWeights: extended, NoTarget: extended})
}
