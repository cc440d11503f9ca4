package vec

// RMSNorm writes (x*r)*w, where r = 1/rms(x), and returns r:
//
//	r = 1/sqrt(SumSquares(x)/n + eps)
func RMSNorm(l Level, dst, x, w []float32, eps float32) (r float32) {
	var mean, root [1]float32
	mean[0] = SumSquares(l, x)/float32(len(x)) + eps
	rsqrtPortable(root[:], mean[:])
	n := len(dst)
	x, w = x[:n], w[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		normScale(l, dst[i:e], x[i:e], w[i:e], root[0])
	}
	return root[0]
}

// RMSNormGrad writes the gradient of x, where g is that of the result and r is what RMSNorm returned:
//
//	dx = (g*w - x*k)*r, k = r*r*(Sum((g*w)*x)/n)
func RMSNormGrad(l Level, dx, g, x, w []float32, r float32) {
	n := len(dx)
	g, x, w = g[:n], x[:n], w[:n]
	var lane lanes
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		dot3Lanes(l, &lane, g[i:e], w[i:e], x[i:e])
	}
	k := r * r * (sumTree(l, &lane) / float32(n))
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		normGrad(l, dx[i:e], g[i:e], x[i:e], w[i:e], r, k)
	}
}

// RMSNormWeightGrad adds the part of a row to the gradient of the weight:
//
//	dw = dw + g*(x*r)
func RMSNormWeightGrad(l Level, dw, g, x []float32, r float32) {
	n := len(dw)
	g, x = g[:n], x[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		normWeightGrad(l, dw[i:e], g[i:e], x[i:e], r)
	}
}
