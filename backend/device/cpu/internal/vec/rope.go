package vec

// Rotate turns the pairs (x[i], x[i+h]) of a row of length 2h by angles whose cosines and sines have h elements:
//
//	y[i]   = x[i]*cos[i] - x[i+h]*sin[i]
//	y[i+h] = x[i+h]*cos[i] + x[i]*sin[i]
//
// A longer x is several such rows (heads) which have the same angles.
func Rotate(l Level, dst, x, cos, sin []float32) {
	h := len(cos)
	for i := 0; i+2*h <= len(x) && h > 0; i += 2 * h {
		rotate(l, dst[i:i+h], dst[i+h:i+2*h], x[i:i+h], x[i+h:i+2*h], cos, sin[:h])
	}
}

// RotateBack turns by the negative angles. It is the gradient of Rotate.
func RotateBack(l Level, dst, x, cos, sin []float32) {
	h := len(cos)
	for i := 0; i+2*h <= len(x) && h > 0; i += 2 * h {
		rotateBack(l, dst[i:i+h], dst[i+h:i+2*h], x[i:i+h], x[i+h:i+2*h], cos, sin[:h])
	}
}
