package main

// mixKernels are element-wise operations of more than two operands.
func mixKernels() []kernel {
	cond := stream{"cond", truth, true, false}
	return []kernel{
		{"mulAdd", "writes a*b + c, rounded once", join(out("dst"), in("a", "b", "c")), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.fma(in[0], in[1], in[2])) }, false},
		{"mulAddScalar", "writes a*s + c, rounded once", join(out("dst"), in("a", "c")), []string{"s"}, nil,
			func(p *program, in, s []val) []val { return one(p.fma(in[0], s[0], in[1])) }, false},
		{"where", "writes a where cond holds, else b", join(out("dst"), []stream{cond}, in("a", "b")), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.choose(in[0], in[1], in[2])) }, false},
		{"fill", "writes s", out("dst"), []string{"s"}, nil,
			func(_ *program, _, s []val) []val { return one(s[0]) }, false},
	}
}

// foldKernels gather a row.
func foldKernels() []kernel {
	self := func(_ *program, in, _ []val) []val { return one(in[0]) }
	return []kernel{
		{"sumLanes", "adds x to the lanes", in("x"), nil, sum, self, false},
		{"maxLanes", "keeps the largest x in the lanes", in("x"), nil, largest, self, false},
		{"minLanes", "keeps the least x in the lanes", in("x"), nil, least, self, false},
		{"maxAbsLanes", "keeps the largest |x| in the lanes", in("x"), nil, largest,
			func(p *program, in, _ []val) []val { return one(p.abs(in[0])) }, false},
		{"squaresLanes", "adds x*x to the lanes", in("x"), nil, sum,
			func(p *program, in, _ []val) []val { return one(p.times(in[0], in[0])) }, false},
		{"dotLanes", "adds a*b to the lanes", in("a", "b"), nil, sum,
			func(p *program, in, _ []val) []val { return one(p.times(in[0], in[1])) }, false},
		{"dot3Lanes", "adds (a*b)*c to the lanes", in("a", "b", "c"), nil, sum,
			func(p *program, in, _ []val) []val { return one(p.times(p.times(in[0], in[1]), in[2])) }, false},
		{"expLanes", "adds exp(x*scale - shift), which is up to 1, to the lanes", in("x"), []string{"scale", "shift"}, sum,
			func(p *program, in, s []val) []val { return one(p.expBelow(p.minus(p.times(in[0], s[0]), s[1]))) }, false},
		{"expStoreLanes", "writes exp(x*scale - shift), which is up to 1, and adds it to the lanes", join(out("dst"), in("x")),
			[]string{"scale", "shift"}, sum,
			func(p *program, in, s []val) []val {
				e := p.expBelow(p.minus(p.times(in[0], s[0]), s[1]))
				return []val{e, e}
			}, false},
	}
}

// rowKernels are the element-wise parts of operations on rows, and of an optimizer.
func rowKernels() []kernel {
	return []kernel{
		{"subSub", "writes (x*scale - a) - b", join(out("dst"), in("x")), []string{"scale", "a", "b"}, nil,
			func(p *program, in, s []val) []val {
				return one(p.minus(p.minus(p.times(in[0], s[0]), s[1]), s[2]))
			}, false},
		{"normScale", "writes (x*r)*w", join(out("dst"), in("x", "w")), []string{"r"}, nil,
			func(p *program, in, s []val) []val { return one(p.times(p.times(in[0], s[0]), in[1])) }, false},
		{"normGrad", "writes (g*w - x*k)*r", join(out("dst"), in("g", "x", "w")), []string{"r", "k"}, nil,
			func(p *program, in, s []val) []val {
				return one(p.times(p.minus(p.times(in[0], in[2]), p.times(in[1], s[1])), s[0]))
			}, false},
		{"normWeightGrad", "adds g*(x*r) to dw", join(inOut("dw"), in("g", "x")), []string{"r"}, nil,
			func(p *program, in, s []val) []val {
				return one(p.plus(in[0], p.times(in[1], p.times(in[2], s[0]))))
			}, false},
		{"swiGLU", "writes silu(a)*b", join(out("dst"), in("a", "b")), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.times(p.silu(in[0]), in[1])) }, false},
		{"swiGLUGrad", "writes the gradients of silu(a)*b", join(out("da", "db"), in("g", "a", "b")), nil, nil, swiGLUGrad, false},
		{"rotate", "writes y1 = x1*cos - x2*sin and y2 = x2*cos + x1*sin",
			join(out("y1", "y2"), in("x1", "x2", "cos", "sin")), nil, nil,
			func(p *program, in, _ []val) []val {
				return []val{
					p.minus(p.times(in[0], in[2]), p.times(in[1], in[3])),
					p.plus(p.times(in[1], in[2]), p.times(in[0], in[3])),
				}
			}, false},
		{"rotateBack", "writes y1 = x1*cos + x2*sin and y2 = x2*cos - x1*sin",
			join(out("y1", "y2"), in("x1", "x2", "cos", "sin")), nil, nil,
			func(p *program, in, _ []val) []val {
				return []val{
					p.plus(p.times(in[0], in[2]), p.times(in[1], in[3])),
					p.minus(p.times(in[1], in[2]), p.times(in[0], in[3])),
				}
			}, false},
		{"wave", "writes the sine of r + quarter*pi/2", join(out("dst"), in("r"), []stream{{"quarter", i32, true, false}}), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.wave(in[0], in[1])) }, false},
		{"adamW", "makes a step of AdamW", join(inOut("w", "m", "v"), in("g")),
			[]string{"keep", "beta1", "rest1", "beta2", "rest2", "root", "eps", "step"}, nil, adamW, false},
	}
}

// swiGLUGrad returns da = (g*b)*(s*(1 + a*(1-s))) and db = g*(a*s), where s = sigmoid(a).
func swiGLUGrad(p *program, in, _ []val) []val {
	g, a, b := in[0], in[1], in[2]
	s := p.sigmoid(a)
	one := p.num(1)
	slope := p.times(s, p.plus(one, p.times(a, p.minus(one, s))))
	return []val{p.times(p.times(g, b), slope), p.times(g, p.times(a, s))}
}

// adamW returns w*keep - step*(m/(sqrt(v)*root + eps)) and the new moments m and v.
func adamW(p *program, in, s []val) []val {
	w, m, v, g := in[0], in[1], in[2], in[3]
	m = p.plus(p.times(m, s[1]), p.times(g, s[2]))
	v = p.plus(p.times(v, s[3]), p.times(p.times(g, g), s[4]))
	below := p.plus(p.times(p.sqrt(v), s[5]), s[6])
	return []val{p.minus(p.times(w, s[0]), p.times(s[7], p.over(m, below))), m, v}
}

// convertKernels change the type of elements.
func convertKernels() []kernel {
	stream1 := func(name string, e elem) []stream { return []stream{{name, e, name == "x", name != "x"}} }
	return []kernel{
		{"toBfloat16", "rounds x to the nearest bfloat16, even on ties", join(stream1("dst", u16), in("x")), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.toBfloat16(in[0])) }, false},
		{"fromBfloat16", "widens a bfloat16", join(out("dst"), stream1("x", u16)), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.asFloat(p.left(in[0], 16))) }, false},
		{"toInt32", "cuts x off towards zero, within the range of int32; NaN is 0", join(stream1("dst", i32), in("x")), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.toInt32(in[0])) }, false},
		{"fromInt32", "rounds an integer to the nearest float, even on ties", join(out("dst"), stream1("x", i32)), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.toFloat(in[0])) }, false},
	}
}

func (p *program) toBfloat16(x val) val {
	w := p.asWord(x)
	odd := p.and(p.right(w, 16), p.bits(1))
	rounded := p.right(p.addWord(w, p.addWord(odd, p.bits(0x7fff))), 16)
	return p.choose(p.cmp(unordered, x, x), p.bits(0x7fc0), rounded)
}

func (p *program) toInt32(x val) val {
	inside := p.choose(p.cmp(less, p.abs(x), p.num(1<<31)), x, p.num(0))
	y := p.choose(p.cmp(greaterEqual, x, p.num(1<<31)), p.bits(1<<31-1), p.truncWord(inside))
	return p.choose(p.cmp(lessEqual, x, p.num(-1<<31)), p.bits(1<<31), y)
}
