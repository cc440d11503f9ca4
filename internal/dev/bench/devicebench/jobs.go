package devicebench

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/gomlx/compute"
)

// Job is an operation at a fixed shape.
type Job struct {
	// Name is operation/shape: matmul/MxKxN/plain, softmax/RxC.
	Name string

	flops  float64 // of a matmul; 0 for operations that memory bounds
	inputs [][]int
	number map[int]float32 // inputs that are filled with one number; others are random
	state  int             // number of leading inputs that the outputs overwrite
	build  func(g graph, x []compute.Value) []compute.Value
}

// Jobs returns all operations, in the order of the table.
func Jobs() []Job {
	var list []Job
	for _, n := range []int{512, 1024, 2048} {
		list = append(list, plainMatmul(n, n, n))
	}
	for _, m := range []int{1, 2, 4, 8, 16, 32, 64} {
		list = append(list, plainMatmul(m, 896, 4864), transposedMatmul(m, 896, 4864))
	}
	list = append(list, plainMatmul(1, 896, 151936), transposedMatmul(1, 896, 151936))
	list = append(list, plainMatmul(2048, 896, 8), plainMatmul(2048, 8, 896))
	list = append(list, rowJobs(4096, 1024)...)
	return append(list, rowJobs(256, 896)...)
}

// plainMatmul multiplies [m, k] by a weight that is stored as [k, n].
func plainMatmul(m, k, n int) Job {
	return Job{
		Name: fmt.Sprintf("matmul/%dx%dx%d/plain", m, k, n), flops: flops(m, k, n), inputs: [][]int{{m, k}, {k, n}},
		build: func(g graph, x []compute.Value) []compute.Value { return []compute.Value{g.matmul(x[0], x[1])} },
	}
}

// transposedMatmul is the same with a weight that is stored as [n, k], as in the files of models.
func transposedMatmul(m, k, n int) Job {
	return Job{
		Name: fmt.Sprintf("matmul/%dx%dx%d/transposed", m, k, n), flops: flops(m, k, n), inputs: [][]int{{m, k}, {n, k}},
		build: func(g graph, x []compute.Value) []compute.Value { return []compute.Value{g.matmulT(x[0], x[1])} },
	}
}

// rowJobs are the operations on rows.
func rowJobs(rows, columns int) []Job {
	var list []Job
	all, table := []int{rows, columns}, []int{rows, headSize}
	add := func(name string, build func(g graph, x []compute.Value) compute.Value, inputs ...[]int) {
		list = append(list, Job{
			Name: fmt.Sprintf("%s/%dx%d", name, rows, columns), inputs: inputs,
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

// adamWJob updates a matrix of parameters, with the bias corrections of the tenth step.
func adamWJob(rows, columns int) Job {
	all, scalar := []int{rows, columns}, []int{}
	return Job{
		Name:   fmt.Sprintf("adamw/%dx%d", rows, columns),
		inputs: [][]int{all, all, all, all, scalar, scalar, scalar, scalar},
		number: map[int]float32{
			2: 0.1, // second moments, which are not negative
			4: 1e-3, 5: float32(1 - math.Pow(0.9, 10)), 6: float32(1 - math.Pow(0.99, 10)), 7: 0.5,
		},
		state: 3,
		build: func(g graph, x []compute.Value) []compute.Value { return g.adamW(x, rows, columns) },
	}
}

// Result is the measurement of a job.
type Result struct {
	Name   string  `json:"name"`
	Best   int64   `json:"best_ns"`
	Median int64   `json:"median_ns"`
	Runs   int     `json:"runs"`
	GFLOP  float64 `json:"gflop_per_s,omitempty"` // matmuls only
	GB     float64 `json:"gb_per_s"`
}

// Measure runs a job until the budget is spent, and at least three times.
func (j Job) Measure(device compute.Backend, budget time.Duration) (Result, error) {
	p, err := compile(device, j)
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	if err := p.once(); err != nil {
		return Result{}, err
	}
	runtime.GC() // garbage of the previous job is not collected while this one is measured
	t, err := measure(budget, 3, p.once)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Name: j.Name, Best: t.best().Nanoseconds(), Median: t.median().Nanoseconds(), Runs: len(t),
		GFLOP: perSecond(j.flops, t.best()), GB: perSecond(float64(p.traffic), t.best()),
	}, nil
}
