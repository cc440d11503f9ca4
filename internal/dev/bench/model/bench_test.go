// Package model measures a model of Qwen3-0.6B's shape with random float32 weights, as peers.py does with PyTorch:
//
//	go test ./internal/dev/bench/model -run - -bench . -benchtime 5x
//
// For correct peaks of memory, run one benchmark per process.
package model

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

const (
	length, cached, capacity = 256, 256, 512 // tokens
	rank                     = 8             // of the adapter
	positions                = 32            // that tokens are decoded at
)

var config = &model.Config{
	ModelType: "qwen3", HiddenAct: "silu", VocabSize: 151936, HiddenSize: 1024, IntermediateSize: 3072, NumLayers: 28,
	NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: true,
}

// subject is a model on a device.
type subject struct {
	device compute.Backend
	kind   dtypes.DType // of matrices
	params model.Params
	bytes  int // of the weights
}

// newSubject makes random weights with the standard deviation of trained ones. The host holds no copy.
func newSubject(b *testing.B, kind dtypes.DType) *subject {
	b.Helper()
	device, err := cpu.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	s := &subject{device: device, kind: kind}
	for _, spec := range config.Specs() {
		x, err := s.draw(spec)
		if err != nil {
			b.Fatal(err)
		}
		s.params.Names, s.params.Tensors = append(s.params.Names, spec.Name), append(s.params.Tensors, x)
		s.bytes += x.DType().Size() * x.Shape().Size()
	}
	return s
}

func (s *subject) draw(spec model.Spec) (*tensors.Tensor, error) {
	if len(spec.Shape) == 1 {
		return graphx.Upload(s.device, slices.Repeat([]float32{1}, spec.Shape[0]), spec.Shape...)
	}
	return graphx.UploadMatrix(s.device, s.kind, spec.Shape[0], spec.Shape[1], func(dst []float32, first int) {
		state := uint32(first)
		for i := range dst {
			state = state*1664525 + 1013904223
			dst[i] = (float32(state>>8)/(1<<24) - 0.5) * 0.07 // a standard deviation of 0.02
		}
	})
}

// inputs begin with the weights.
func (s *subject) inputs(more ...any) []any {
	in := make([]any, 0, len(s.params.Tensors)+len(more))
	for _, x := range s.params.Tensors {
		in = append(in, x)
	}
	return append(in, more...)
}

// forward is the model over the first inputs; rest are the others.
func (s *subject) forward(in []*Node) (f *model.Forward, rest []*Node) {
	n := len(s.params.Names)
	weights := slices.Clone(in[:n])
	for i, w := range weights {
		if w.DType() == dtypes.BFloat16 {
			weights[i] = ConvertDType(w, dtypes.Float32)
		}
	}
	return &model.Forward{Config: config, Param: s.params.Lookup(weights), Frozen: true}, in[n:]
}

// measure runs f repeatedly, and reports the rates of a call. flops are those of all its matmuls.
func (s *subject) measure(b *testing.B, tokens int, flops float64, f func() error) {
	b.Helper()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	perSecond := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(float64(tokens)*perSecond, "tokens/s")
	b.ReportMetric(peak(b)/float64(s.bytes), "peak/weights")
	s.compare(b, flops, f)
}

// compare alternates f with two measurements of the machine: square matmuls of size 1,024, and memory bandwidth. It
// reports, as medians, the time of a call relative to the time that its matmuls would take at the speed of the square
// ones around it ("x-matmul"), and to the time that reading the weights would take ("x-read").
func (s *subject) compare(b *testing.B, flops float64, f func() error) {
	b.Helper()
	multiply, read := s.squareMatmuls(b), s.reading(b)
	var matmuls, reads []float64
	matmul, reading := seconds(b, multiply), seconds(b, read)
	for range max(5, b.N) {
		call, lastMatmul, lastReading := seconds(b, f), matmul, reading
		matmul, reading = seconds(b, multiply), seconds(b, read)
		matmuls = append(matmuls, 2*call/(matmul+lastMatmul)*squareFLOPs/flops)
		reads = append(reads, 2*call/(reading+lastReading)*readBytes/float64(s.bytes))
	}
	b.ReportMetric(median(matmuls), "x-matmul")
	b.ReportMetric(median(reads), "x-read")
}

func seconds(b *testing.B, f func() error) float64 {
	b.Helper()
	start := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start).Seconds()
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

const squareFLOPs = 10 << 31

// squareMatmuls multiplies matrices of 1,024 x 1,024, ten times.
func (s *subject) squareMatmuls(b *testing.B) func() error {
	b.Helper()
	x, err := graphx.Upload(s.device, slices.Repeat([]float32{1}, 1<<20), 1<<10, 1<<10)
	if err != nil {
		b.Fatal(err)
	}
	exec := MustNewExec(s.device, func(x *Node) *Node { return Dot(x, x).Product() })
	run := func() error {
		for range 10 {
			out, err := exec.Call(x)
			if err != nil {
				return err
			}
			drop(out)
		}
		return nil
	}
	seconds(b, run) // compiles, and touches the memory
	return run
}

const readBytes = 1 << 29

// reading reads memory sequentially.
func (s *subject) reading(b *testing.B) func() error {
	b.Helper()
	device := s.device.(*cpu.Device)
	_, flat, err := device.NewSharedBuffer(0, shapes.Make(dtypes.Float32, readBytes/4))
	if err != nil {
		b.Fatal(err)
	}
	list := flat.([]float32)
	for i := range list {
		list[i] = 1
	}
	run := func() error {
		device.Read(list)
		return nil
	}
	seconds(b, run)
	return run
}

// peak is the peak resident memory of the process, in bytes.
func peak(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("the peak of memory is read from /proc, as Linux has it")
	}
	kb, err := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s*(\d+)`).FindSubmatch(status)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb) * 1024
}

// attentionFLOPs are the operations of causal attention over a sequence: half of the scores.
func attentionFLOPs() float64 {
	return 2 * length * length * float64(config.NumLayers*config.NumHeads*config.HeadDim)
}

// adapterFLOPs are the operations of one pass of n tokens through all matrices of an adapter.
func adapterFLOPs(rank, n int) float64 {
	count := 0
	for _, l := range config.Linears() {
		count += rank * (l.In + l.Out)
	}
	return 2 * float64(n) * float64(count)
}

// weightsFLOPs are the operations of one pass of n tokens through all weights.
func weightsFLOPs(n int) float64 {
	count := 0
	for _, spec := range config.Specs() {
		if len(spec.Shape) == 2 {
			count += spec.Shape[0] * spec.Shape[1]
		}
	}
	return 2 * float64(n) * float64(count)
}

func ids(rows, columns int) *tensors.Tensor {
	list := make([]int32, rows*columns)
	for i := range list {
		list[i] = int32(i * 100)
	}
	return tensors.FromFlatDataAndDimensions(list, rows, columns)
}

func drop(out []*tensors.Tensor) {
	for _, x := range out {
		x.MustFinalizeAll()
	}
}

// eachKind measures with weights in float32 and in bfloat16.
func eachKind(b *testing.B, measure func(b *testing.B, s *subject)) {
	for _, kind := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		b.Run(strings.ToLower(kind.String()), func(b *testing.B) {
			runtime.GC() // frees the weights of the other type
			measure(b, newSubject(b, kind))
		})
	}
}

// BenchmarkForward computes the logits of all tokens of a sequence.
func BenchmarkForward(b *testing.B) { eachKind(b, forward) }

func forward(b *testing.B, s *subject) {
	exec := MustNewExec(s.device, func(in []*Node) []*Node {
		f, rest := s.forward(in)
		h, _ := f.Hidden(model.Input{Tokens: rest[0]})
		return []*Node{f.Logits(Reshape(h, -1, config.HiddenSize))}
	})
	in := s.inputs(ids(1, length))
	s.measure(b, length, weightsFLOPs(length)+attentionFLOPs(), func() error {
		out, err := exec.Call(in...)
		drop(out)
		return err
	})
}

// BenchmarkTrain computes the gradient of a LoRA adapter of rank 8 on all linear layers, from the logprobs of all
// tokens.
func BenchmarkTrain(b *testing.B) { eachKind(b, train) }

func train(b *testing.B, s *subject) {
	var layers []lora.LayerShape
	for _, l := range config.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	adapter, err := lora.New(lora.Config{Rank: rank}, layers, 1)
	if err != nil {
		b.Fatal(err)
	}
	var more []any
	for _, p := range adapter.Params() {
		more = append(more, tensors.FromFlatDataAndDimensions(p.Data, p.Shape...))
	}
	n := len(more)
	exec := MustNewExec(s.device, func(in []*Node) []*Node {
		f, rest := s.forward(in)
		f.Linear, _ = adapter.Hooks(lora.Nodes{Trained: rest[:n]})
		h, _ := f.Hidden(model.Input{Tokens: rest[n]})
		loss := Neg(ReduceAllSum(f.TokenLogProbs(Reshape(h, -1, config.HiddenSize), rest[n+1])))
		return append(Gradient(loss, rest[:n]...), loss)
	})
	in := s.inputs(append(more, ids(1, length), ids(length, 1))...)
	// Backward, a matmul has one matmul for each operand that needs a gradient. Weights need none.
	flops := 2*weightsFLOPs(length) + 3*adapterFLOPs(rank, length) + 3*attentionFLOPs()
	s.measure(b, length, flops, func() error {
		out, err := exec.Call(in...)
		drop(out)
		return err
	})
}

// BenchmarkDecode computes the next tokens of sequences with 256 tokens on average in a cache of 512. "x-one" is the
// number of tokens in the time of one, against a single sequence in alternating runs: a median.
func BenchmarkDecode(b *testing.B) {
	eachKind(b, func(b *testing.B, s *subject) {
		for _, batch := range []int{1, 2, 4, 8, 16} {
			b.Run(fmt.Sprint(batch), func(b *testing.B) { s.decode(b, batch) })
		}
	})
}

func (s *subject) decode(b *testing.B, batch int) {
	run, end := s.decoder(batch)
	defer end()
	s.measure(b, batch, weightsFLOPs(batch), run)
	if batch == 1 {
		return
	}
	one, end := s.decoder(1)
	defer end()
	seconds(b, one)
	var gains []float64
	last := seconds(b, one)
	for range max(5, b.N) {
		many, next := seconds(b, run), seconds(b, one)
		gains = append(gains, float64(batch)*(last+next)/2/many)
		last = next
	}
	b.ReportMetric(median(gains), "x-one")
}

// blockTokens is the size of a block of the cache.
const blockTokens = 32

// empty is a cache of zeros for a number of sequences.
func (s *subject) empty(batch int) []*tensors.Tensor {
	return MustExecOnceN(s.device, func(g *Graph) (out []*Node) {
		dims := []int{config.NumKVHeads, batch * capacity / blockTokens, blockTokens, config.HeadDim}
		for range 2 * config.NumLayers {
			out = append(out, Zeros(g, shapes.Make(dtypes.Float32, dims...)))
		}
		return out
	})
}

// decoder returns functions that decode the next token of each sequence of a batch, and that release the decoder. After
// the last position it begins anew.
func (s *subject) decoder(batch int) (run func() error, end func()) {
	const first, behind = cached - positions/2, cached + positions/2
	layers, position := s.empty(batch), first
	exec := MustNewExec(s.device, func(in []*Node) []*Node {
		f, rest := s.forward(in)
		past := &model.Cache{Start: rest[1], Count: rest[2], Blocks: rest[3]}
		for i := 4; i < len(rest); i += 2 {
			past.Layers = append(past.Layers, model.KV{K: rest[i], V: rest[i+1]})
		}
		h, next := f.Hidden(model.Input{Tokens: rest[0], Cache: past})
		out := []*Node{f.LogProbs(Reshape(h, -1, config.HiddenSize))}
		for _, kv := range next {
			out = append(out, kv.K, kv.V)
		}
		return out
	})
	count := tensors.FromFlatDataAndDimensions(slices.Repeat([]int32{1}, batch), batch)
	var blocks []int32
	for i := range batch * capacity / blockTokens {
		blocks = append(blocks, int32(i))
	}
	before := s.inputs(ids(batch, 1))
	after := []any{count, tensors.FromFlatDataAndDimensions(blocks, batch, len(blocks)/batch)}
	run = func() error {
		if position == behind {
			position = first
		}
		start := tensors.FromFlatDataAndDimensions(slices.Repeat([]int32{int32(position)}, batch), batch)
		position++
		in := append(slices.Clip(before), start)
		in = append(in, after...)
		for _, x := range layers {
			donated, err := DonateTensorBuffer(x, s.device, 0)
			if err != nil {
				return err
			}
			in = append(in, donated)
		}
		out, err := exec.Call(in...)
		if err != nil {
			return err
		}
		drop(out[:1])
		layers = out[1:]
		return nil
	}
	return run, func() { drop(layers) }
}
