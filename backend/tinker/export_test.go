package tinker

import "github.com/goart-dev/art"

// Bounds are the bounds of the ratio that are sent.
func Bounds(cfg *art.TrainConfig) (low, high float64) {
	loss, err := new(Backend).policyLoss(cfg)
	if err != nil {
		panic(err)
	}
	return loss.lo, loss.hi
}

// StatusError is the error of an answer.
func StatusError(status int, detail string) error {
	return new(Backend).broken("forward_backward", &statusError{status, detail})
}
