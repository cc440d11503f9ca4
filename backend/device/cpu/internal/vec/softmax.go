package vec

// Softmax writes e[i]/sum(e), where e[i] = exp(x[i]*scale - m) and m is the largest x[i]*scale:
//
//	y = e * (1/Sum(e))
//
// Elements from n on are masked: they become 0 and are not looked at. If all elements are -Inf, the results are NaN.
func Softmax(l Level, dst, x []float32, n int, scale float32) {
	dst, x, rest := dst[:n], x[:n], dst[n:]
	m := top(l, x, scale)
	BinaryScalar(l, OpMul, dst, dst, 1/expStore(l, dst, x, scale, m))
	Fill(l, rest, 0)
}

// LogSoftmax writes (x*scale - m) - log(sum), with m and the sum of Softmax. Elements from n on become -Inf.
func LogSoftmax(l Level, dst, x []float32, n int, scale float32) {
	dst, x, rest := dst[:n], x[:n], dst[n:]
	m, sum := logSum(l, x, scale)
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		subSub(l, dst[i:e], x[i:e], scale, m, sum)
	}
	Fill(l, rest, negativeInfinity)
}

// LogSoftmaxAt returns element i of LogSoftmax.
func LogSoftmaxAt(l Level, x []float32, i int, scale float32) float32 {
	m, sum := logSum(l, x, scale)
	var y [1]float32
	subSub(l, y[:], x[i:i+1], scale, m, sum)
	return y[0]
}

// top returns the largest x*scale.
func top(l Level, x []float32, scale float32) float32 {
	if scale < 0 {
		return Min(l, x) * scale
	}
	return Max(l, x) * scale
}

// logSum returns the largest x*scale, and the logarithm of the sum of exp(x*scale - m).
func logSum(l Level, x []float32, scale float32) (m, sum float32) {
	m = top(l, x, scale)
	var y [1]float32
	logPortable(y[:], []float32{expSum(l, x, scale, m)})
	return m, y[0]
}

// expStore writes exp(x*scale - m) and returns the sum.
func expStore(l Level, dst, x []float32, scale, m float32) float32 {
	if len(x) <= chunk {
		return expStoreLanes(l, nil, dst, x, scale, m)
	}
	var w lanes
	for len(x) > chunk {
		expStoreLanes(l, &w, dst[:chunk], x[:chunk], scale, m)
		dst, x = dst[chunk:], x[chunk:]
	}
	return expStoreLanes(l, &w, dst, x, scale, m)
}

// expSum returns the sum of exp(x*scale - m).
func expSum(l Level, x []float32, scale, m float32) float32 {
	if len(x) <= chunk {
		return expLanes(l, nil, x, scale, m)
	}
	var w lanes
	for len(x) > chunk {
		expLanes(l, &w, x[:chunk], scale, m)
		x = x[chunk:]
	}
	return expLanes(l, &w, x, scale, m)
}
