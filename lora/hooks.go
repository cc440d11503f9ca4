package lora

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shapes: M rows of x, In and Out sizes of the layer, R rank, n rows of a part of the weight, P adapters (one for each
// of P equal blocks of rows).

// hook returns what [Adapter.Hooks] does for linear layers without DoRA. params returns the matrices of a layer, and
// ok = false for one without an adapter.
func (c Config) hook(
	params func(name string) (a, b *Node, ok bool),
) func(x *Node, name string, base func(*Node) *Node) *Node {
	return func(x *Node, name string, base func(*Node) *Node) *Node {
		y := base(x)
		a, b, ok := params(name)
		if !ok {
			return y
		}
		delta := c.delta(x, name, a, b)
		return Add(y, Reshape(convert(delta, y.DType()), y.Shape().Dimensions...))
	}
}

// delta builds Scale·x·a·b, [M, Out] or [P, M/P, Out].
func (c Config) delta(x *Node, name string, a, b *Node) *Node {
	in, rank, out, scale := x.Shape().Dim(-1), c.LayerRank(name), b.Shape().Dim(-1), c.Scale(name)
	x = convert(x, a.DType())
	switch a.Rank() {
	case 2:
		a.AssertDims(in, rank)
		b.AssertDims(rank, out)
		x = Reshape(x, -1, in) // [M, In]
	case 3:
		p := a.Shape().Dim(0)
		a.AssertDims(p, in, rank)
		b.AssertDims(p, rank, out)
		x = Reshape(x, p, -1, in) // [P, M/P, In]
	default:
		panic(fmt.Errorf("lora: the adapter of %q has shape %s, want [In, Rank] or [P, In, Rank]", name, a.Shape()))
	}
	down := BatchMatMul(x, a) // [..., R]
	return BatchMatMul(scaled(down, scale), b)
}

// embeddingHook is hook of the embedding.
func (c Config) embeddingHook(
	params func(name string) (a, b *Node, ok bool),
) func(ids *Node, name string, x *Node) *Node {
	return func(ids *Node, name string, x *Node) *Node {
		a, b, ok := params(name)
		if !ok {
			return x
		}
		rank := c.LayerRank(name)
		a.AssertDims(-1, rank)
		b.AssertDims(rank, x.Shape().Dim(-1))
		rows := Reshape(Gather(a, ids), -1, rank) // [M, R]
		delta := BatchMatMul(scaled(rows, c.Scale(name)), b)
		return Add(x, Reshape(convert(delta, x.DType()), x.Shape().Dimensions...))
	}
}

func scaled(x *Node, scale float64) *Node {
	if scale == 1 {
		return x
	}
	return MulScalar(x, scale)
}

func convert(x *Node, dtype dtypes.DType) *Node {
	if x.DType() == dtype {
		return x
	}
	return ConvertDType(x, dtype)
}

// Nodes are what the graph of a model has of an adapter.
type Nodes struct {
	// Trained are the tensors of the adapter, in the order of [Adapter.Params].
	Trained []*Node
	// Norms are those that [Norms.Of] returns, with DoRA; otherwise there are none.
	Norms []*Node
	// Bias returns the bias [Out] of a layer of the base model, nil where it has none. Only DoRA calls it.
	Bias func(layer string) *Node
}

// Hooks returns the functions that a model calls for its linear layers and its embedding while a graph is built. x is
// [..., In], base builds the frozen layer, name is its full name, ids are [..., 1], int32, and x [..., Out] of the
// embedding is what the base model looks up. For a layer without an adapter they build base(x), or x. Otherwise they
// build
//
//	y = base(x) + (Scale·(x·a))·b        a [In, Rank], b [Rank, Out]
//	y = x + Scale·a[ids]·b               of an embedding
//
// With b = 0 this is base(x) bit for bit, except that -0 becomes 0. The adapter is computed in the dtype of a and b,
// and converted to that of base(x).
//
// For several adapters at once a may be [P, In, Rank] and b [P, Rank, Out]: the rows of x, flattened, are P blocks of
// equal size, and block p gets adapter p. With x [B, T, In] and P = B that is an adapter for each sequence.
//
// With DoRA they build, with y what is above, g (Out) the magnitudes divided by the norms, and bias that of the base
// layer, which is not scaled:
//
//	y' = y + (g - 1)·(y - bias)
//
// Norms are inputs of the graph, so they have no gradient, as in the paper (section 4.3). It panics when the numbers of
// nodes are wrong.
func (a *Adapter) Hooks(n Nodes) (
	linear func(x *Node, name string, base func(*Node) *Node) *Node,
	embedding func(ids *Node, name string, x *Node) *Node,
) {
	cfg, matrices := a.Config(), a.lookup(n.Trained)
	if len(n.Norms) != a.NumNorms() {
		panic(fmt.Errorf("lora: %d norms, want %d", len(n.Norms), a.NumNorms()))
	}
	plain, plainEmbedding := cfg.hook(matrices), cfg.embeddingHook(matrices)
	if !cfg.DoRA {
		return plain, plainEmbedding
	}
	linear = func(x *Node, name string, base func(*Node) *Node) *Node {
		y := plain(x, name, base)
		i, ok := a.find(name)
		if !ok {
			return y
		}
		g, bias := n.gain(i, y), n.Bias(name)
		if bias == nil {
			return Mul(y, g)
		}
		return Add(y, Mul(AddScalar(g, -1), Sub(y, ExpandLeftToRank(bias, y.Rank())))) // exactly y where g is 1
	}
	embedding = func(ids *Node, name string, x *Node) *Node {
		y := plainEmbedding(ids, name, x)
		if i, ok := a.find(name); ok {
			y = Mul(y, n.gain(i, y))
		}
		return y
	}
	return linear, embedding
}

// gain builds the magnitudes of a layer divided by the norms, to be multiplied with y [..., Out].
func (n Nodes) gain(layer int, y *Node) *Node {
	g := Div(n.Trained[3*layer+2], n.Norms[layer])
	g.AssertDims(y.Shape().Dim(-1))
	return ExpandLeftToRank(convert(g, y.DType()), y.Rank())
}

// NumNorms is the number of norms that [Adapter.Hooks] needs: that of the layers, and 0 without DoRA.
func (a *Adapter) NumNorms() int {
	if !a.config.DoRA {
		return 0
	}
	return len(a.layers)
}

// NormShapes returns the shapes of the norms.
func (a *Adapter) NormShapes() []shapes.Shape {
	var list []shapes.Shape
	for _, l := range a.layers[:a.NumNorms()] {
		list = append(list, shapes.Make(dtypes.Float32, l.Out))
	}
	return list
}

// leastNorm replaces norms that are 0, or nearly: the output of such a row is 0, whatever it is divided by.
const leastNorm = 1e-30

// normElements is the number of weights whose sums with the adapter are in memory at once.
const normElements = 1 << 20

// Norms computes what DoRA divides by, on a device: for each output of a layer the Euclidean length of its weights,
// with the adapter added to them,
//
//	norm[o] = ‖W[o] + Scale·(B·A)[o]‖            W [Out, In]; of an embedding Wᵀ
//
// It costs about as much as the forward pass of as many tokens as the rank. The sampler and the trainer compute norms
// apart from the model, with these graphs, so that they divide by the same bits. It is not safe for concurrent use.
type Norms struct {
	linear, embedding *Exec
}

// NewNorms returns an empty Norms, whose graphs are compiled at their first use.
func NewNorms(device compute.Backend) (*Norms, error) {
	n := &Norms{}
	for _, x := range []struct {
		exec  **Exec
		build func(w, a, b, scale *Node) *Node
	}{{&n.linear, rowNorms}, {&n.embedding, columnNorms}} {
		e, err := NewExec(device, func(in []*Node) *Node { return x.build(in[0], in[1], in[2], in[3]) })
		if err != nil {
			return nil, fmt.Errorf("lora: norms: %w", err)
		}
		*x.exec = e.SetMaxCache(-1) // bounded by the shapes of the layers
	}
	return n, nil
}

// Finalize releases the compiled graphs.
func (n *Norms) Finalize() {
	n.linear.Finalize()
	n.embedding.Finalize()
}

func (n *Norms) exec(l Layer) *Exec {
	if l.Embedding {
		return n.embedding
	}
	return n.linear
}

// Of returns the norms of the layers of an adapter with DoRA, in their order. trained are its tensors in the order of
// [Adapter.Params], whatever the values of a are, and weight returns the weight of a layer of the base model: [Out,
// In], or [In, Out] of an embedding. The caller frees what is returned.
func (n *Norms) Of(
	a *Adapter, trained []*tensors.Tensor, weight func(layer string) *tensors.Tensor,
) (norms []*tensors.Tensor, err error) {
	for i, l := range a.layers[:a.NumNorms()] {
		switch w := weight(l.Name); {
		case w == nil:
			err = errors.New("the base model does not have its weight")
		case w.DType() == dtypes.Int8:
			err = errors.New("its weight is int8, and DoRA needs those of float32 or bfloat16")
		default:
			var x *tensors.Tensor
			x, err = n.exec(l).Call1(w, trained[3*i], trained[3*i+1], float32(a.config.Scale(l.Name)))
			norms = append(norms, x)
		}
		if err != nil {
			for _, x := range norms[:i] {
				_ = x.FinalizeAll() // the first error is the one to report
			}
			return nil, fmt.Errorf("lora: norms of %q: %w", l.Name, err)
		}
	}
	return norms, nil
}

// WorkBytes returns how many bytes [Norms.Of] takes besides its inputs and results, for an adapter of this layout on
// float32 weights. Graphs are compiled, not run.
func (n *Norms) WorkBytes(a *Adapter) (most int64, err error) {
	for _, l := range a.layers[:a.NumNorms()] {
		w := []int{l.Out, l.In}
		if l.Embedding {
			w = []int{l.In, l.Out}
		}
		f32 := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }
		bytes, err := WorkBytes(n.exec(l), []shapes.Shape{f32(w...), f32(l.In, l.rank()), f32(l.rank(), l.Out), f32()})
		if err != nil {
			return 0, fmt.Errorf("lora: norms of %q: %w", l.Name, err)
		}
		most = max(most, bytes)
	}
	return most, nil
}

// InitMagnitudes sets the magnitudes of an adapter with DoRA to the norms of its layers, so that it computes what it
// would without DoRA: a new one leaves the output of the model unchanged. weight is that of [Norms.Of]. An adapter
// without DoRA is left as it is.
func (a *Adapter) InitMagnitudes(device compute.Backend, weight func(layer string) *tensors.Tensor) error {
	if !a.config.DoRA {
		return nil
	}
	n, err := NewNorms(device)
	if err != nil {
		return err
	}
	defer n.Finalize()
	var trained []*tensors.Tensor
	for _, p := range a.Params() {
		trained = append(trained, tensors.FromFlatDataAndDimensions(p.Data, p.Shape...))
	}
	norms, err := n.Of(a, trained, weight)
	if err != nil {
		return err
	}
	for i, x := range norms {
		values, bad := tensors.CopyFlatData[float32](x)
		err = errors.Join(err, bad, x.FinalizeAll())
		a.layers[i].Magnitude = values
	}
	return err
}

// rowNorms builds the norms of a linear layer: w [Out, In], a [In, R], b [R, Out].
func rowNorms(w, a, b, scale *Node) *Node {
	var list []*Node
	out, in := w.Shape().Dim(0), w.Shape().Dim(1)
	b.AssertDims(-1, out)
	for first, n := range parts(out, in) {
		delta := DotGeneral(Slice(b, AxisRange(), AxisRange(first, first+n)), []int{0}, nil, a, []int{1}, nil) // [n, In]
		list = append(list, ReduceSum(squares(w, first, n, delta, scale), -1))
	}
	return norm(Concatenate(list, 0))
}

// columnNorms builds the norms of an embedding: w [In, Out], a [In, R], b [R, Out].
func columnNorms(w, a, b, scale *Node) *Node {
	var sum *Node
	in, out := w.Shape().Dim(0), w.Shape().Dim(1)
	a.AssertDims(in, -1)
	for first, n := range parts(in, out) {
		delta := BatchMatMul(Slice(a, AxisRange(first, first+n), AxisRange()), b) // [n, Out]
		part := ReduceSum(squares(w, first, n, delta, scale), 0)
		if sum == nil {
			sum = part
		} else {
			sum = Add(sum, part)
		}
	}
	return norm(sum)
}

// parts yields the first of some rows and their number.
func parts(rows, columns int) func(yield func(first, n int) bool) {
	step := max(1, normElements/columns)
	return func(yield func(first, n int) bool) {
		for first := 0; first < rows && yield(first, min(step, rows-first)); first += step {
		}
	}
}

// squares builds the squares of n rows of w + scale·delta. Rows are gathered since a packed matrix allows nothing else.
func squares(w *Node, first, n int, delta, scale *Node) *Node {
	rows := AddScalar(Iota(w.Graph(), shapes.Make(dtypes.Int32, n, 1), 0), first)
	x := Add(Gather(convert(w, delta.DType()), rows), Mul(convert(scale, delta.DType()), delta))
	return Mul(x, x)
}

// norm builds the root of sums of squares.
func norm(sum *Node) *Node { return MaxScalar(Sqrt(sum), leastNorm) }
