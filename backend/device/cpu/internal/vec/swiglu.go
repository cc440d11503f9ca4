package vec

// SwiGLU writes silu(a)*b.
func SwiGLU(l Level, dst, a, b []float32) {
	n := len(dst)
	a, b = a[:n], b[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		swiGLU(l, dst[i:e], a[i:e], b[i:e])
	}
}

// SwiGLUGrad writes the gradients of a and b, where g is that of the result and s = sigmoid(a):
//
//	da = (g*b)*(s*(1 + a*(1-s)))
//	db = g*(a*s)
func SwiGLUGrad(l Level, da, db, g, a, b []float32) {
	n := len(da)
	db, g, a, b = db[:n], g[:n], a[:n], b[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		swiGLUGrad(l, da[i:e], db[i:e], g[i:e], a[i:e], b[i:e])
	}
}
