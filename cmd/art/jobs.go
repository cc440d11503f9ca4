package main

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
)

// job is an operation at a shape, which is measured.
type job struct {
	name   string
	flops  float64 // of a product; 0 for what memory bounds
	inputs [][]int
	number map[int]float32 // inputs that hold one number; others have random ones
	state  int             // so many of the first inputs are updated: the outputs are written over them
	build  func(g graph, x []compute.Value) []compute.Value
}

// jobs are all that is measured, in the order of the table.
func jobs() []job {
	var list []job
	for _, n := range []int{512, 1024, 2048} {
		list = append(list, plainProduct(n, n, n))
	}
	for _, m := range []int{1, 2, 4, 8, 16, 32, 64} {
		list = append(list, plainProduct(m, 896, 4864), transposedProduct(m, 896, 4864))
	}
	list = append(list, plainProduct(1, 896, 151936), transposedProduct(1, 896, 151936))
	list = append(list, plainProduct(2048, 896, 8), plainProduct(2048, 8, 896))
	list = append(list, rowJobs(4096, 1024)...)
	return append(list, rowJobs(256, 896)...)
}

// plainProduct is the product of [m, k] and a weight that lies as [k, n].
func plainProduct(m, k, n int) job {
	return job{
		name: fmt.Sprintf("product/%dx%dx%d/plain", m, k, n), flops: flops(m, k, n), inputs: [][]int{{m, k}, {k, n}},
		build: func(g graph, x []compute.Value) []compute.Value { return []compute.Value{g.product(x[0], x[1])} },
	}
}

// transposedProduct is the same with a weight that lies as [n, k], as in the files of models.
func transposedProduct(m, k, n int) job {
	return job{
		name: fmt.Sprintf("product/%dx%dx%d/transposed", m, k, n), flops: flops(m, k, n), inputs: [][]int{{m, k}, {n, k}},
		build: func(g graph, x []compute.Value) []compute.Value { return []compute.Value{g.productT(x[0], x[1])} },
	}
}

// rowJobs are the operations on rows.
func rowJobs(rows, columns int) []job {
	var list []job
	all, table := []int{rows, columns}, []int{rows, headSize}
	add := func(name string, build func(g graph, x []compute.Value) compute.Value, inputs ...[]int) {
		list = append(list, job{
			name: fmt.Sprintf("%s/%dx%d", name, rows, columns), inputs: inputs,
			build: func(g graph, x []compute.Value) []compute.Value { return []compute.Value{build(g, x)} },
		})
	}
	add("add", func(g graph, x []compute.Value) compute.Value { return must(g.f.Add(x[0], x[1])) }, all, all)
	add("exp", func(g graph, x []compute.Value) compute.Value { return must(g.f.Exp(x[0])) }, all)
	add("sum", func(g graph, x []compute.Value) compute.Value { return must(g.f.ReduceSum(x[0], 1)) }, all)
	add("softmax", func(g graph, x []compute.Value) compute.Value { return g.softmax(x[0], rows, columns) }, all)
	add("rmsnorm", func(g graph, x []compute.Value) compute.Value { return g.rmsNorm(x[0], x[1], rows, columns) }, all,
		[]int{columns})
	add("swiglu", func(g graph, x []compute.Value) compute.Value { return g.swiGLU(x[0], x[1]) }, all, all)
	add("rope", func(g graph, x []compute.Value) compute.Value { return g.rope(x[0], x[1], x[2], rows, columns) }, all,
		table, table)
	list = append(list, adamWJob(rows, columns))
	add("transpose", func(g graph, x []compute.Value) compute.Value { return must(g.f.Transpose(x[0], 1, 0)) }, all)
	return list
}

// adamWJob is the update of a matrix of parameters. Its numbers are those of the tenth step.
func adamWJob(rows, columns int) job {
	all, scalar := []int{rows, columns}, []int{}
	return job{
		name:   fmt.Sprintf("adamw/%dx%d", rows, columns),
		inputs: [][]int{all, all, all, all, scalar, scalar, scalar, scalar},
		number: map[int]float32{
			2: 0.1, // second moments, which are not negative
			4: 1e-3, 5: float32(1 - math.Pow(0.9, 10)), 6: float32(1 - math.Pow(0.99, 10)), 7: 0.5,
		},
		state: 3,
		build: func(g graph, x []compute.Value) []compute.Value { return g.adamW(x, rows, columns) },
	}
}
