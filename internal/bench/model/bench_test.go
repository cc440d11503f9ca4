package model_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

func config() *model.Config {
	return &model.Config{ModelType: "qwen3", VocabSize: 151936, HiddenSize: 1024, IntermediateSize: 3072, NumLayers: 28, NumHeads: 16, NumKVHeads: 8, HeadDim: 128,
		MaxPositions: 40960, RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: true, HiddenAct: "silu"}
}

func weights(c *model.Config) *model.Weights {
	w := &model.Weights{Config: c}
	s := uint32(1)
	for _, spec := range c.Specs() {
		n := 1
		for _, d := range spec.Shape {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			s = s*1664525 + 1013904223
			x[i] = (float32(s>>8)/(1<<24) - 0.5) * 0.05
			if len(spec.Shape) == 1 {
				x[i] = 1
			}
		}
		w.Tensors = append(w.Tensors, model.Tensor{Name: spec.Name, Shape: spec.Shape, Data: x})
	}
	return w
}

func peak() float64 {
	data, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(l, "VmHWM") {
			kb, _ := strconv.Atoi(strings.Fields(l)[1])
			return float64(kb) / 1e6
		}
	}
	return 0
}

func any2(list []*tensors.Tensor) (out []any) {
	for _, t := range list {
		out = append(out, t)
	}
	return
}

func BenchmarkForward(b *testing.B) {
	c := config()
	device, _ := cpu.New(nil)
	w := weights(c)
	p, err := w.Params(device)
	if err != nil {
		b.Fatal(err)
	}
	w = nil
	n := len(p.Tensors)
	e := MustNewExec(device, func(in []*Node) *Node {
		f := &model.Forward{Config: c, Param: p.Lookup(in[:n])}
		h, _ := f.Hidden(model.Input{Tokens: in[n]})
		return f.Logits(Reshape(h, -1, c.HiddenSize))
	})
	ids := make([]int32, 256)
	for i := range ids {
		ids[i] = int32(i * 100)
	}
	in := append(any2(p.Tensors), tensors.FromFlatDataAndDimensions(ids, 1, 256))
	run := func() {
		for _, o := range e.MustCall(in...) {
			o.MustFinalizeAll()
		}
	}
	run()
	for b.Loop() {
		run()
	}
	b.ReportMetric(peak(), "peak-GB")
}

func BenchmarkTrain(b *testing.B) {
	c := config()
	device, _ := cpu.New(nil)
	w := weights(c)
	p, _ := w.Params(device)
	w = nil
	n := len(p.Tensors)
	var shapes []lora.LayerShape
	for _, l := range c.Linears() {
		shapes = append(shapes, lora.LayerShape{Name: l.Name, In: l.In, Out: l.Out})
	}
	a, err := lora.New(lora.Config{}, shapes, 1)
	if err != nil {
		b.Fatal(err)
	}
	in := any2(p.Tensors)
	for _, q := range a.Params() {
		in = append(in, tensors.FromFlatDataAndDimensions(q.Data, q.Shape...))
	}
	m := len(in)
	e := MustNewExec(device, func(in []*Node) []*Node {
		f := &model.Forward{Config: c, Param: p.Lookup(in[:n]), Linear: a.Config().Hook(a.Lookup(in[n:m]))}
		h, _ := f.Hidden(model.Input{Tokens: in[m]})
		f.Frozen = true
		loss := Neg(ReduceAllSum(f.TokenLogProbs(Reshape(h, -1, c.HiddenSize), in[m+1])))
		return append(Gradient(loss, in[n:m]...), loss)
	})
	ids := make([]int32, 256)
	for i := range ids {
		ids[i] = int32(i * 100)
	}
	in = append(in, tensors.FromFlatDataAndDimensions(ids, 1, 256), tensors.FromFlatDataAndDimensions(ids, 256, 1))
	run := func() {
		for _, o := range e.MustCall(in...) {
			o.MustFinalizeAll()
		}
	}
	run()
	for b.Loop() {
		run()
	}
	b.ReportMetric(peak(), "peak-GB")
}

func BenchmarkDecode(b *testing.B) {
	c := config()
	device, _ := cpu.New(nil)
	w := weights(c)
	p, _ := w.Params(device)
	w = nil
	n := len(p.Tensors)
	for _, batch := range []int{1, 8} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			const s = 512
			layers := MustExecOnceN(device, func(g *Graph) (out []*Node) {
				for range 2 * c.NumLayers {
					out = append(out, Zeros(g, shapes.Make(dtypes.Float32, batch, c.NumKVHeads, s, c.HeadDim)))
				}
				return out
			})
			e := MustNewExec(device, func(in []*Node) []*Node {
				f := &model.Forward{Config: c, Param: p.Lookup(in[:n])}
				past := &model.Cache{Start: in[len(in)-2], Count: in[len(in)-1]}
				for i := n; i < len(in)-3; i += 2 {
					past.Layers = append(past.Layers, model.KV{K: in[i], V: in[i+1]})
				}
				h, next := f.Hidden(model.Input{Tokens: in[len(in)-3], Cache: past})
				out := []*Node{f.LogProbs(Reshape(h, -1, c.HiddenSize))}
				for _, kv := range next {
					out = append(out, kv.K, kv.V)
				}
				return out
			})
			ids, start, count := make([]int32, batch), make([]int32, batch), make([]int32, batch)
			for i := range start {
				start[i], count[i] = 256, 1
			}
			run := func() {
				in := any2(p.Tensors)
				for _, x := range layers {
					d, err := DonateTensorBuffer(x, device, 0)
					if err != nil {
						b.Fatal(err)
					}
					in = append(in, d)
				}
				in = append(in, tensors.FromFlatDataAndDimensions(ids, batch, 1), tensors.FromFlatDataAndDimensions(start, batch), tensors.FromFlatDataAndDimensions(count, batch))
				out := e.MustCall(in...)
				out[0].MustFinalizeAll()
				layers = out[1:]
			}
			run()
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(batch)*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
			b.ReportMetric(peak(), "peak-GB")
		})
	}
}
