package engine

// Stopper ends a reply at what the engine does not know of, such as a stop string. It is called with each token of one
// reply that is not in [Request].End, in order, by one goroutine, and returns whether the reply ends with that token,
// and why.
type Stopper func(id int32) (why Reason, done bool)

// StopText returns a [Stopper] for stop strings. add decodes a token and reports whether the text now contains one of
// them, as the Add method of a tokenizer's stream does.
func StopText(add func(id int32) (delta string, stopped bool)) Stopper {
	return func(id int32) (Reason, bool) {
		_, stopped := add(id)
		return Stopped, stopped
	}
}
