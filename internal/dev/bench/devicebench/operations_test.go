package devicebench

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
)

// outputs runs a job once and returns its inputs and its outputs.
func outputs(t *testing.T, j Job) (in, out [][]float32) {
	t.Helper()
	p, err := compile(newDevice(t), j)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	read := func(b compute.Buffer) []float32 {
		shape, _ := b.Shape()
		x := make([]float32, shape.Size())
		if err := b.ToFlatData(x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, b := range p.inputs {
		in = append(in, read(b))
	}
	results, err := p.exec.Execute(p.inputs, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range results {
		out = append(out, read(b))
	}
	return in, out
}

// TestOperations_MatchPlainGo: each job computes what its name says.
func TestOperations_MatchPlainGo(t *testing.T) {
	const rows, columns = 3, 2 * headSize
	at := func(i, j int) int { return i*columns + j }
	row := func(x []float32, i int, f func(float64) float64) (sum float64) {
		for _, v := range x[i*columns : (i+1)*columns] {
			sum += f(float64(v))
		}
		return sum
	}
	moments := func(in [][]float32, i, j int) (m, v float64) {
		g := float64(in[7][0]) * float64(in[3][at(i, j)])
		return 0.9*float64(in[1][at(i, j)]) + 0.1*g, 0.99*float64(in[2][at(i, j)]) + 0.01*g*g
	}
	want := map[string]func(in [][]float32, i, j int) float64{
		"add": func(in [][]float32, i, j int) float64 { return float64(in[0][at(i, j)]) + float64(in[1][at(i, j)]) },
		"exp": func(in [][]float32, i, j int) float64 { return math.Exp(float64(in[0][at(i, j)])) },
		"softmax": func(in [][]float32, i, j int) float64 {
			return math.Exp(float64(in[0][at(i, j)])) / row(in[0], i, math.Exp)
		},
		"rmsnorm": func(in [][]float32, i, j int) float64 {
			mean := row(in[0], i, func(v float64) float64 { return v * v }) / columns
			return float64(in[0][at(i, j)]) / math.Sqrt(mean+1e-6) * float64(in[1][j])
		},
		"swiglu": func(in [][]float32, i, j int) float64 {
			x := float64(in[0][at(i, j)])
			return x / (1 + math.Exp(-x)) * float64(in[1][at(i, j)])
		},
		"rope": func(in [][]float32, i, j int) float64 {
			const half = headSize / 2
			k := i*headSize + j%headSize
			x, c, s := in[0], float64(in[1][k]), float64(in[2][k])
			if j%headSize < half {
				return float64(x[at(i, j)])*c + float64(x[at(i, j+half)])*s
			}
			return float64(x[at(i, j)])*c + float64(x[at(i, j-half)])*s
		},
		"adamw": func(in [][]float32, i, j int) float64 {
			p := float64(in[0][at(i, j)])
			m, v := moments(in, i, j)
			return p - float64(in[4][0])*(m/float64(in[5][0])/(math.Sqrt(v/float64(in[6][0]))+1e-8)+0.1*p)
		},
		"adamw 1": func(in [][]float32, i, j int) float64 { m, _ := moments(in, i, j); return m },
		"adamw 2": func(in [][]float32, i, j int) float64 { _, v := moments(in, i, j); return v },
	}
	for _, j := range rowJobs(rows, columns) {
		name, _, _ := strings.Cut(j.Name, "/")
		in, out := outputs(t, j)
		for k := range out {
			if k > 0 {
				name = fmt.Sprintf("%s %d", strings.Fields(name)[0], k)
			}
			f := want[name]
			if f == nil {
				continue // sum and transpose have another shape
			}
			for i, got := range out[k] {
				if w := f(in, i/columns, i%columns); math.Abs(float64(got)-w) > 1e-5 {
					t.Fatalf("%s: element %d is %v, want %v", name, i, got, w)
				}
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("not measured: %v", want)
	}
}

// TestMatmuls_MatchPlainGo: both layouts are matmuls.
func TestMatmuls_MatchPlainGo(t *testing.T) {
	const m, k, n = 3, 5, 7
	for _, j := range []Job{plainMatmul(m, k, n), transposedMatmul(m, k, n)} {
		in, all := outputs(t, j)
		out := all[0]
		row, col := n, 1
		if j.inputs[1][0] == n {
			row, col = 1, k
		}
		for i := range out {
			sum := 0.0
			for l := range k {
				sum += float64(in[0][i/n*k+l]) * float64(in[1][l*row+i%n*col])
			}
			if math.Abs(sum-float64(out[i])) > 1e-6 {
				t.Fatalf("%s: element %d is %v, want %v", j.Name, i, out[i], sum)
			}
		}
		if j.flops != 2*m*k*n {
			t.Errorf("%s: %v operations", j.Name, j.flops)
		}
	}
}

// TestCompile_Fails: a graph that cannot be built is an error.
func TestCompile_Fails(t *testing.T) {
	bad := plainMatmul(2, 3, 4)
	bad.inputs[1] = []int{2, 3}
	if _, err := compile(newDevice(t), bad); err == nil {
		t.Error("a matmul of [2, 3] and [2, 3]")
	}
}

// TestAdamW_InPlace: each output overwrites the input that it replaces, and is the input of the next run.
func TestAdamW_InPlace(t *testing.T) {
	j := adamWJob(3, 5)
	p, err := compile(newDevice(t), j)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var memory [][]float32
	for _, b := range p.inputs[:j.state] {
		memory = append(memory, flat(t, b))
	}
	for range 2 {
		before := make([]float32, j.state)
		for i, x := range memory {
			before[i] = x[0]
		}
		if err := p.once(); err != nil {
			t.Fatal(err)
		}
		for i, b := range p.inputs[:j.state] {
			if x := flat(t, b); &x[0] != &memory[i][0] || x[0] == before[i] {
				t.Errorf("output %d does not overwrite its input", i)
			}
		}
	}
}

// flat is the memory of a buffer.
func flat(t *testing.T, b compute.Buffer) []float32 {
	t.Helper()
	x, err := b.Data()
	if err != nil {
		t.Fatal(err)
	}
	return x.([]float32)
}
