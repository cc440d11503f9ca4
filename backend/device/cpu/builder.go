package cpu

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// builder makes one computation.
type builder struct {
	notimplemented.Builder
	device   *Device
	name     string
	main     *function
	declared []*function // operations of the device
	compiled bool
}

func newBuilder(d *Device, name string) *builder {
	b := &builder{device: d, name: name}
	b.main = newFunction(b)
	return b
}

func newFunction(b *builder) *function {
	f := &function{builder: b, known: map[string]*ir.Node{}}
	f.ErrFn = func(op compute.OpType) error {
		return fmt.Errorf("cpu: the operation %s is missing: %w", op, compute.ErrNotImplemented)
	}
	return f
}

// Name of the computation.
func (b *builder) Name() string { return b.name }

// Main is the only function.
func (b *builder) Main() compute.Function { return b.main }

// OpShape returns the shape of a value.
func (b *builder) OpShape(v value) (shapes.Shape, error) {
	for _, f := range b.declared {
		if n, err := f.node(v); err == nil {
			return n.Shape, nil
		}
	}
	return b.main.Shape(v)
}

// Compile makes an executable of the graph.
func (b *builder) Compile() (compute.Executable, error) {
	if b.compiled {
		return nil, fmt.Errorf("cpu: computation %q was compiled already", b.name)
	}
	if b.main.outputs == nil {
		return nil, errors.New("cpu: nothing is returned: call Return before Compile")
	}
	b.compiled = true
	return b.device.compile(ir.Graph{Name: b.name, Parameters: b.main.parameters, Outputs: b.main.outputs})
}

// function is a graph that grows.
type function struct {
	notimplemented.Function
	builder    *builder
	nodes      []*ir.Node
	parameters []*ir.Node
	outputs    []*ir.Node          // nil until Return
	known      map[string]*ir.Node // by signature
	operation  string              // that it declares; "" for the main function
}

var _ compute.Function = (*function)(nil)

// Name is that of the main function.
func (f *function) Name() string { return compute.MainName }

// Builder returns the builder.
func (f *function) Builder() compute.Builder { return f.builder }

// Shape of a value.
func (f *function) Shape(v value) (shapes.Shape, error) {
	n, err := f.node(v)
	if err != nil {
		return shapes.Invalid(), err
	}
	return n.Shape, nil
}

// Parameter adds an input of the computation.
func (f *function) Parameter(name string, shape shapes.Shape, sharding *compute.ShardingSpec) (value, error) {
	if sharding != nil {
		return nil, errors.New("cpu: there is one device: parameters cannot be sharded")
	}
	if err := supported(shape); err != nil {
		return nil, err
	}
	v, err := f.add(compute.OpTypeParameter, shape, ir.ParameterAttr{Name: name})
	if err == nil {
		f.parameters = append(f.parameters, v.(*ir.Node))
	}
	return v, err
}

// Constant adds a copy of data.
func (f *function) Constant(flat any, dims ...int) (value, error) {
	t := reflect.TypeOf(flat)
	if t == nil || t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("cpu: a constant of %T; it takes a slice of numbers", flat)
	}
	shape := shapes.Make(dtypes.FromGoType(t.Elem()), dims...)
	if err := supported(shape); err != nil {
		return nil, err
	}
	data, err := bytesFor(flat, shape)
	if err != nil {
		return nil, err
	}
	mem := memory.New(memory.Round(len(data)))
	copy(memory.Bytes(mem.Base, len(data)), data)
	return f.add(compute.OpTypeConstant, shape, ir.ConstantAttr{Data: memory.Bytes(mem.Base, len(data))})
}

// Return names the outputs.
func (f *function) Return(outputs []value, shardings []*compute.ShardingSpec) error {
	if f.outputs != nil {
		return errors.New("cpu: Return was called already")
	}
	for _, s := range shardings {
		if s != nil {
			return errors.New("cpu: there is one device: outputs cannot be sharded")
		}
	}
	list := make([]*ir.Node, len(outputs))
	for i, v := range outputs {
		n, err := f.node(v)
		if err != nil {
			return err
		}
		list[i] = n
	}
	f.outputs = list
	return nil
}

// node returns what a value stands for.
func (f *function) node(v value) (*ir.Node, error) {
	n, ok := v.(*ir.Node)
	if !ok || n == nil || n.ID >= len(f.nodes) || f.nodes[n.ID] != n {
		return nil, fmt.Errorf("cpu: the value %v is not of this function", v)
	}
	return n, nil
}

// add appends an operation.
func (f *function) add(op compute.OpType, shape shapes.Shape, attr any, in ...*ir.Node) (value, error) {
	if f.outputs != nil {
		return nil, fmt.Errorf("cpu: %s after Return", op)
	}
	if err := supported(shape); err != nil {
		return nil, err
	}
	key, shared := signature(op, shape, attr, in)
	if n := f.known[key]; shared && n != nil {
		return n, nil
	}
	n := &ir.Node{ID: len(f.nodes), Op: op, Shape: shape, In: in, Attr: attr}
	f.nodes = append(f.nodes, n)
	if shared {
		f.known[key] = n
	}
	return n, nil
}

// operands returns the nodes of values.
func (f *function) operands(values ...value) ([]*ir.Node, error) {
	out := make([]*ir.Node, len(values))
	for i, v := range values {
		n, err := f.node(v)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// sharedBytes is the size of the largest constant that is compared with others.
const sharedBytes = 1 << 10

// signature says what an operation computes: operations of one signature are one node of the graph. A parameter has
// none, nor has a large constant.
func signature(op compute.OpType, shape shapes.Shape, attr any, in []*ir.Node) (key string, ok bool) {
	b := strconv.AppendInt(nil, int64(op), 10)
	b = fmt.Append(b, " ", shape.DType, shape.Dimensions)
	for _, x := range in {
		b = strconv.AppendInt(append(b, ' '), int64(x.ID), 10)
	}
	switch attr := attr.(type) {
	case ir.ParameterAttr:
		return "", false
	case ir.ConstantAttr:
		if len(attr.Data) > sharedBytes {
			return "", false
		}
		return string(append(append(b, ' '), attr.Data...)), true
	case nil:
		return string(b), true
	}
	return string(fmt.Appendf(b, " %T%v", attr, attr)), true
}
