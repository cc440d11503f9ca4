package cpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/backend/device/cpu/internal/compile"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// spy is a device that remembers what it compiles.
type spy struct {
	*Device
	plans []*ir.Plan
}

func (s *spy) Builder(name string) compute.Builder { return &spyBuilder{newBuilder(s.Device, name), s} }

type spyBuilder struct {
	*builder
	spy *spy
}

func (b *spyBuilder) Compile() (compute.Executable, error) {
	e, err := b.builder.Compile()
	if err == nil {
		b.spy.plans = append(b.spy.plans, e.(*executable).plan)
	}
	return e, err
}

// patterns are known by operations that one loop has all of, in their order, and by what is around the loop.
var patterns = []struct {
	name  string
	ops   string
	fused bool // matmuls before and after are in the same step
}{
	{"RMSNorm", "Mul ReduceSum Mul Add Sqrt Div Mul", false},
	{"RoPE", "Mul Mul Add", false},
	{"RMSNorm and RoPE", "Mul ReduceSum Mul Add Sqrt Div Mul Mul Mul Add", false},
	{"SwiGLU", "Logistic Mul Mul", false},
	{"attention", "Where ReduceMax Sub Exp ReduceSum Div", true},
	{"attention backward", "Where Mul ReduceSum Sub Mul", true},
	{"logprobs", "ReduceMax Sub Exp ReduceSum Div Log Sub Where ReduceSum", true},
	{"log-softmax", "ReduceMax Sub Exp ReduceSum Log Sub", false},
}

// countPatterns returns how often each pattern occurs.
func countPatterns(p *ir.Plan) map[string]int {
	found := map[string]int{}
	for _, s := range p.Steps {
		l := ir.LoopOf(s)
		_, fused := s.(*ir.Attention)
		for _, p := range patterns {
			if l != nil && p.fused == fused && contains(l.Fused, strings.Fields(p.ops)) {
				found[p.name]++
			}
		}
	}
	return found
}

// combined returns how often each kernel for several operations is used.
func combined(p *ir.Plan) map[string]int {
	found := map[string]int{}
	for _, s := range p.Steps {
		l := ir.LoopOf(s)
		if l == nil {
			continue
		}
		for _, in := range l.Instrs {
			if in.Do == ir.Combine {
				found[in.Kernel.Of.Name]++
			}
		}
	}
	return found
}

// joined returns how many sums of two matmuls, which is what LoRA adds to a layer, and of a matmul and a number for
// each column, which is what a bias does, are in a loop with what comes after them, and how many are loops of their
// own.
func joined(p *ir.Plan) (lora, bias, alone int) {
	writers := map[*ir.Tensor]ir.Step{}
	for _, s := range p.Steps {
		for _, x := range s.Writes() {
			writers[x] = s
		}
	}
	matmulOf := func(v ir.View) bool {
		_, ok := writers[v.Of].(*ir.Matmul)
		return ok && v.Of.Count == ir.Volume(v.Dims)
	}
	for _, s := range p.Steps {
		l := ir.LoopOf(s)
		if l == nil {
			continue
		}
		for _, m := range l.Fused {
			if m.Op != compute.OpTypeAdd || !matmulOf(m.In[0]) {
				continue
			}
			repeated := slices.Contains(m.In[1].Strides, 0) && writers[m.In[1].Of] == nil
			switch {
			case !matmulOf(m.In[1]) && !repeated:
			case len(l.Fused) == 1:
				alone++
			case repeated:
				bias++
			default:
				lora++
			}
		}
	}
	return lora, bias, alone
}

// contains reports whether the operations of a loop hold some in an order.
func contains(list []ir.FusedOp, ops []string) bool {
	for _, m := range list {
		if len(ops) > 0 && m.Op.String() == ops[0] {
			ops = ops[1:]
		}
	}
	return len(ops) == 0
}

func patternConfig() *model.Config {
	return &model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 2 * compile.WideRow, HiddenSize: 32, IntermediateSize: 48,
		NumLayers: 3, NumHeads: 4,
		NumKVHeads: 2, HeadDim: 8, MaxPositions: 64, RMSNormEps: 1e-6, RopeTheta: 1e4, TieEmbeddings: true,
	}
}

// build compiles a graph of a model with an adapter, and returns the plan.
func (s *spy) build(t *testing.T, extra []shapes.Shape, outputs func(f *model.Forward, trained,
	in []*graph.Node) []*graph.Node) *ir.Plan {
	t.Helper()
	c := patternConfig()
	var layers []lora.LayerShape
	for _, l := range c.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	a, err := lora.New(lora.Config{Rank: 4}, layers, 1)
	if err != nil {
		t.Fatal(err)
	}
	g := graph.NewGraph(s, "patterns")
	params := &model.Params{}
	var weights, trained, in []*graph.Node
	for _, spec := range c.Specs() {
		params.Names = append(params.Names, spec.Name)
		weights = append(weights, graph.Parameter(g, spec.Name, shapes.Make(dtypes.Float32, spec.Shape...)))
	}
	for _, p := range a.Params() {
		trained = append(trained, graph.Parameter(g, p.Name, shapes.Make(dtypes.Float32, p.Shape...)))
	}
	for _, shape := range extra {
		in = append(in, graph.Parameter(g, "", shape))
	}
	f := &model.Forward{Config: c, Param: params.Lookup(weights), Frozen: true}
	f.Linear, _ = a.Hooks(lora.Nodes{Trained: trained})
	g.Compile(outputs(f, trained, in)...)
	for i, spec := range c.Specs() {
		if packable := s.plans[len(s.plans)-1].Inputs[i].Packable; len(spec.Shape) == 2 && !packable {
			t.Errorf("%s cannot be packed", spec.Name)
		}
	}
	return s.plans[len(s.plans)-1]
}

// TestPatterns_Inference: what a model computes for new tokens of cached sequences is as few steps as it can be, and
// the cache is written in place.
func TestPatterns_Inference(t *testing.T) {
	s := &spy{Device: newDevice(t, 2)}
	const rows, width, blocks, each = 3, 2, 6, 8
	config := patternConfig()
	list := shapes.Make(dtypes.Int32, rows)
	extra := []shapes.Shape{
		shapes.Make(dtypes.Int32, rows, width), list, list, shapes.Make(dtypes.Int32, rows, blocks),
	}
	for range 2 * config.NumLayers {
		extra = append(extra, shapes.Make(dtypes.Float32, config.NumKVHeads, 20, each, config.HeadDim))
	}
	c := s.build(t, extra, func(f *model.Forward, _, in []*graph.Node) []*graph.Node {
		past := &model.Cache{Start: in[1], Count: in[2], Blocks: in[3]}
		for i := 4; i < len(in); i += 2 {
			past.Layers = append(past.Layers, model.KV{K: in[i], V: in[i+1]})
		}
		h, next := f.Hidden(model.Input{Tokens: in[0], Cache: past})
		out := []*graph.Node{f.LogProbs(graph.Reshape(h, -1, config.HiddenSize))}
		for _, kv := range next {
			out = append(out, kv.K, kv.V)
		}
		return out
	})
	found := countPatterns(c)
	layers := config.NumLayers
	checkCounts(t, combined(c), map[string]int{"dot": 4*layers + 1, "swiGLU": layers, "expSum": layers,
		"productSum": 2 * layers})
	checkCounts(t, found, map[string]int{"RMSNorm": 4*layers + 1, "RMSNorm and RoPE": 2 * layers, "SwiGLU": layers,
		"attention": layers, "log-softmax": 1, "logprobs": 0})
	if lora, _, alone := joined(c); lora != 6*layers || alone != layers { // values go to the cache, in another order
		t.Errorf("%d of %d sums of a layer and its adapter are in a loop with what follows, %d alone", lora, 7*layers, alone)
	}
	if found["RoPE"] < 2*layers {
		t.Errorf("%d RoPE", found["RoPE"])
	}
	for _, x := range c.Tensors {
		if x.Count == rows*config.NumKVHeads*blocks*each*config.HeadDim && x.Memory == ir.InArena {
			t.Error("a part of the cache is copied")
		}
	}
	inPlace := 0
	for _, o := range c.Outputs {
		if o.Donor >= 0 {
			inPlace++
		}
	}
	if inPlace != 2*layers {
		t.Errorf("%d of %d caches are written in place", inPlace, 2*layers)
	}
}

// TestPatterns_Training: the same for the loss and its gradients, which compute attention weights and SwiGLU again. No
// array has all tokens and entries of the vocabulary, nor all pairs of tokens but those weights, their gradients and
// those of the scores.
func TestPatterns_Training(t *testing.T) {
	s := &spy{Device: newDevice(t, 2)}
	const rows, width = 2, 23
	n := rows * width
	vector := shapes.Make(dtypes.Float32, n)
	extra := []shapes.Shape{shapes.Make(dtypes.Int32, rows, width), shapes.Make(dtypes.Int32, n, 1), vector, vector,
		vector, vector, shapes.Make(dtypes.Float32)}
	c := s.build(t, extra, func(f *model.Forward, trained, in []*graph.Node) []*graph.Node {
		h, _ := f.Hidden(model.Input{Tokens: in[0]})
		logprobs := f.TokenLogProbs(graph.Reshape(h, -1, f.Config.HiddenSize), in[1])
		loss, metrics := grpo.BuildLoss(grpo.PolicyLoss{}, grpo.LossInputs{
			New: logprobs, Old: in[2], Advantage: in[3], Weight: in[4], Mask: in[5], Denominator: in[6],
		})
		return append(graph.Gradient(loss, trained...), metrics)
	})
	layers := patternConfig().NumLayers
	checkCounts(t, countPatterns(c), map[string]int{"RMSNorm and RoPE": 2 * layers, "SwiGLU": 2 * layers,
		"attention": 2 * layers, "attention backward": layers, "logprobs": 1, "log-softmax": 0})
	checkCounts(t, combined(c), map[string]int{"dot": 5*layers + 2, "productSum": 4 * layers, "swiGLUSlope": layers,
		"expSum": 2 * layers})
	if got := countPatterns(c)["RMSNorm"]; got < 4*layers+1 {
		t.Errorf("%d RMSNorm", got)
	}
	if lora, _, alone := joined(c); lora < 6*layers || alone > 2*layers { // and sums of gradients
		t.Errorf("%d sums of a layer and its adapter are in a loop with what follows, %d alone", lora, alone)
	}
	vocabulary, square := 0, 0
	var tiles []*ir.Tensor
	for _, s := range c.Steps {
		if k, ok := s.(*ir.Attention); ok {
			tiles = append(tiles, k.Shared...)
		}
	}
	for _, x := range c.Tensors {
		if x.Memory != ir.InArena || slices.Contains(tiles, x) {
			continue // a tile of fused attention may have them all where they are few
		}
		if x.Count == n*patternConfig().VocabSize {
			vocabulary++
		}
		if x.Count == rows*4*width*width {
			square++
		}
	}
	if vocabulary > 0 || square > 3*layers {
		t.Errorf("%d arrays of tokens and vocabulary, %d of tokens and tokens", vocabulary, square)
	}
}

// TestPatterns_Bias: a dense layer with a bias and an activation is a matmul and one loop.
func TestPatterns_Bias(t *testing.T) {
	s := &spy{Device: newDevice(t, 2)}
	g := graph.NewGraph(s, "bias")
	f32 := func(dims ...int) *graph.Node { return graph.Parameter(g, "", shapes.Make(dtypes.Float32, dims...)) }
	x, w, b := f32(5, 7), f32(9, 7), f32(9)
	y := graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
	y = graph.Add(y, graph.BroadcastToDims(graph.Reshape(b, 1, 9), 5, 9))
	g.Compile(graph.Mul(y, graph.Tanh(y)))
	c := s.plans[0]
	if _, bias, alone := joined(c); bias != 1 || alone != 0 || len(c.Steps) != 2 {
		t.Errorf("%d biases in a loop, %d alone, %d steps", bias, alone, len(c.Steps))
	}
}

// TestPatterns_AdamW: the update of a tensor, which may be skipped, is one loop of three outputs, each written over
// what it was made of.
func TestPatterns_AdamW(t *testing.T) {
	s := &spy{Device: newDevice(t, 2)}
	const tensors = 3
	g := graph.NewGraph(s, "adamw")
	var in [4][]*graph.Node // parameters, moments, gradients
	for i := range in {
		for k := range tensors {
			in[i] = append(in[i], graph.Parameter(g, fmt.Sprint(i, " ", k), shapes.Make(dtypes.Float32, 40+k, 30)))
		}
	}
	scalars := graph.Parameter(g, "scalars", shapes.Make(dtypes.Float32, grpo.NumScalars))
	optimizer := grpo.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	next, norm := optimizer.Step(grpo.AdamWState{Params: in[0], M: in[1], V: in[2]}, in[3], scalars)
	g.Compile(append(next.Nodes(), norm)...)
	c := s.plans[0]
	passes := 0
	for _, s := range c.Steps {
		l := ir.LoopOf(s)
		if l != nil && contains(l.Fused, strings.Fields("Mul Mul Add Mul Mul Add Div Sqrt Div Sub Where")) {
			passes++
			outputs := 0
			for _, m := range l.Fused {
				// the norm of all may be in one of them, as a number for its only row
				if slices.Contains(l.Results, m.Out) && !m.Row {
					outputs++
				}
			}
			if outputs != 3 {
				t.Errorf("a pass has %d outputs", outputs)
			}
		}
	}
	inPlace := 0
	for i, o := range c.Outputs[:3*tensors] {
		if o.Donor == i {
			inPlace++
		}
	}
	checkCounts(t, combined(c), map[string]int{"adamW": tensors})
	if passes != tensors || inPlace != 3*tensors {
		t.Errorf("%d passes for %d tensors, %d of %d outputs in place", passes, tensors, inPlace, 3*tensors)
	}
}

func checkCounts(t *testing.T, found, want map[string]int) {
	t.Helper()
	for name, n := range want {
		if found[name] != n {
			t.Errorf("%d %s, want %d", found[name], name, n)
		}
	}
}
