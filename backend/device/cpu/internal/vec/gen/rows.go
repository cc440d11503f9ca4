package main

import "strings"

// mixKernels are element-wise operations of more than two operands.
func mixKernels() []kernel {
	cond := stream{name: "cond", elem: truth, reads: true}
	return []kernel{
		{"where", "writes a where cond holds, else b", join(out("dst"), []stream{cond}, in("a", "b")), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.choose(in[0], in[1], in[2])) }, false},
		{"fill", "writes s", out("dst"), []string{"s"}, nil,
			func(_ *program, _, s []val) []val { return one(s[0]) }, false},
	}
}

// waveKernel is for sines of large angles, one by one.
func waveKernel() kernel {
	return kernel{"wave", "writes the sine of r + quarter*pi/2", join(out("dst"), in("r"),
		[]stream{{name: "quarter", elem: i32, reads: true}}), nil, nil,
		func(p *program, in, _ []val) []val { return one(p.wave(in[0], in[1])) }, false}
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
		{"quotientLanes", "writes a/b by r = 1/b, for b > 0 of moderate size, " +
			"and keeps bits of a in the lanes that say where it is wrong",
			join(out("dst"), in("a")), []string{"b", "r"}, anyBits,
			func(p *program, in, s []val) []val { return []val{p.quotient(in[0], s[0], s[1]), p.extreme(in[0])} }, false},
	}
}

// rowsParameters are those of a kernel that gathers rows of n elements.
const rowsParameters = "dst, x []float32, n int"

// rowKernels are the folds of which there are kernels for several rows.
func rowKernels() []kernel { return foldKernels()[:3] }

func (k kernel) rowsName() string { return strings.TrimSuffix(k.name, "Lanes") + "Rows" }

// convertKernels change the type of elements.
func convertKernels() []kernel {
	stream1 := func(name string, e elem) []stream {
		return []stream{{name: name, elem: e, reads: name == "x", write: name != "x"}}
	}
	return []kernel{
		{"toBfloat16", "rounds x to the nearest bfloat16, even on ties", join(stream1("dst", u16), in("x")), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.toBfloat16(in[0])) }, false},
		{"fromBfloat16", "widens a bfloat16", join(out("dst"), stream1("x", u16)), nil, nil,
			func(p *program, in, _ []val) []val { return one(p.asFloat(p.left(in[0], 16))) }, false},
	}
}

func (p *program) toBfloat16(x val) val {
	w := p.asWord(x)
	odd := p.and(p.right(w, 16), p.bits(1))
	rounded := p.right(p.addWord(w, p.addWord(odd, p.bits(0x7fff))), 16)
	return p.choose(p.cmp(unordered, x, x), p.bits(0x7fc0), rounded)
}
