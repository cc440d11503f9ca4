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
	k := r * r * (dot3(l, g, w, x) / float32(n))
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

// dot3 returns the sum of (a*b)*c.
func dot3(l Level, a, b, c []float32) float32 {
	if len(a) <= chunk {
		return dot3Lanes(l, nil, a, b, c)
	}
	var w lanes
	for len(a) > chunk {
		dot3Lanes(l, &w, a[:chunk], b[:chunk], c[:chunk])
		a, b, c = a[chunk:], b[chunk:], c[chunk:]
	}
	return dot3Lanes(l, &w, a, b, c)
}
