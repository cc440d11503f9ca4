package cpu

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// unit is a step that is being put together: one operation, or several that are fused.
type unit struct {
	last     int     // highest node of it
	rank     int     // place among the sorted units
	reads    []view  // what it reads from outside
	deps     []*unit // what writes it
	group    *group  // of fused operations, or nil
	chain    *chain  // of products around the group, or nil
	step     step    // for others
	into     *unit   // the unit that this one was merged into
	stamp    int     // of the last search that came by
	position int     // in the order of steps
}

// compiler turns the nodes of a function into steps.
type compiler struct {
	device   *Device
	values   map[*node]view
	tensors  []*tensor
	units    []*unit
	sorted   []*unit // units, each behind those that it waits for
	searches int
}

// compile makes an executable of a function.
func compile(d *Device, f *function) (e *executable, err error) {
	defer func() {
		if value := recover(); value != nil {
			e, err = nil, fmt.Errorf("cpu: compiling %q: %v", f.builder.name, value)
		}
	}()
	return newCompiler(d).compile(f.parameters, f.outputs, nil)
}

func newCompiler(d *Device) *compiler { return &compiler{device: d, values: map[*node]view{}} }

// compile compiles what outputs need. known are values that are there already.
func (c *compiler) compile(parameters, outputs []*node, known map[*node]view) (*executable, error) {
	d := c.device
	used := needed(outputs, known)
	if known == nil {
		var err error
		if known, err = foldConstants(d, used, outputs); err != nil {
			return nil, err
		}
		used = needed(outputs, known)
	}
	e := &executable{device: d}
	for i, p := range parameters {
		e.names = append(e.names, p.attr.(parameter).name)
		e.inputs = append(e.inputs, p.shape)
		t := c.tensor(p.shape)
		t.place, t.index, t.matrix = inInput, i, p.shape.Dimensions
		c.values[p] = whole(t, p.shape.Dimensions)
	}
	for n, v := range known {
		v.of = c.adopt(v.of)
		c.values[n] = v
	}
	for _, n := range used {
		if _, ok := c.values[n]; !ok {
			c.lower(n)
		}
	}
	c.turnProducts(outputs)
	for _, n := range outputs {
		e.outputs = append(e.outputs, c.output(n, len(e.outputs)))
	}
	c.finish(e)
	return e, nil
}

// needed returns the nodes that outputs depend on, in their order, up to those that are known.
func needed(outputs []*node, known map[*node]view) []*node {
	seen := map[*node]bool{}
	var visit func(n *node)
	var list []*node
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		list = append(list, n)
		if _, ok := known[n]; ok {
			return
		}
		for _, x := range n.in {
			visit(x)
		}
	}
	for _, n := range outputs {
		visit(n)
	}
	slices.SortFunc(list, func(a, b *node) int { return a.id - b.id })
	return list
}

func (c *compiler) tensor(s shapes.Shape) *tensor {
	t := &tensor{id: len(c.tensors), kind: s.DType, size: s.DType.Size(), count: s.Size()}
	c.tensors = append(c.tensors, t)
	return t
}

// scratch adds memory for float32 numbers that a unit uses while it runs.
func (c *compiler) scratch(u *unit, count int) *tensor {
	t := c.tensor(shapes.Make(dtypes.Float32, count))
	t.writer, t.outside = u, true
	t.first, t.last = u.position, u.position
	return t
}

// adopt copies a constant of another compiler.
func (c *compiler) adopt(t *tensor) *tensor {
	own := *t
	own.id = len(c.tensors)
	c.tensors = append(c.tensors, &own)
	return &own
}

// output makes the value of n a tensor of its own, as the output with the given index.
func (c *compiler) output(n *node, index int) output {
	v := c.values[n]
	if v.of.place != inArena || v.off != 0 || v.of.count != n.shape.Size() || !v.contiguous() {
		v = c.copy(v, n.shape, n.id)
	}
	v.of.place, v.of.index, v.of.outside = inOutput, index, true
	return output{shape: n.shape, of: v.of, donor: -1}
}

// finish orders the units and places the tensors.
func (c *compiler) finish(e *executable) {
	c.sink()
	c.chains()
	c.sparsify()
	order := c.order()
	for _, u := range order {
		switch {
		case u.chain != nil:
			u.reads = u.chain.reads()
		case u.group != nil:
			u.reads = u.external()
		}
		for _, v := range u.reads {
			v.of.outside = true
		}
	}
	for i, u := range order {
		u.position = i
		for _, v := range u.reads {
			v.of.last = max(v.of.last, i)
		}
	}
	for _, t := range c.tensors {
		if t.writer != nil {
			t.first = t.writer.root().position
			t.last = max(t.last, t.first)
		}
	}
	for _, u := range order {
		if u.group != nil {
			u.step = c.build(u)
		}
		e.steps = append(e.steps, u.step)
	}
	c.donors(e)
	c.packable(e, order)
	e.tensors, e.arena = c.tensors, arena(c.tensors)
	if e.steps == nil {
		e.steps = []step{}
	}
}

// external returns what the members of a group read from elsewhere.
func (u *unit) external() (list []view) {
	for _, m := range u.group.members {
		for _, v := range m.in {
			if w := v.of.writer; w == nil || w.root() != u {
				list = append(list, v)
			}
		}
	}
	return list
}

// order sorts the units so that each comes after what it reads, in the order of their nodes otherwise.
func (c *compiler) order() []*unit {
	var list []*unit
	for _, u := range c.units {
		if u.into == nil {
			list = append(list, u)
		}
	}
	slices.SortStableFunc(list, func(a, b *unit) int { return a.last - b.last })
	var out []*unit
	done := map[*unit]bool{}
	var visit func(u *unit)
	visit = func(u *unit) {
		if done[u] {
			return
		}
		done[u] = true
		for _, d := range u.deps {
			visit(d.root())
		}
		out = append(out, u)
	}
	for _, u := range list {
		visit(u)
	}
	return out
}

// root returns the unit that u is a part of.
func (u *unit) root() *unit {
	for u.into != nil {
		u = u.into
	}
	return u
}

// single adds a unit of one operation, which reads views and writes a new tensor.
func (c *compiler) single(id int, s shapes.Shape, reads []view, make func(out view) step) view {
	u := &unit{last: id}
	for _, v := range reads {
		c.reads(u, v)
	}
	t := c.tensor(s)
	t.writer = u
	out := whole(t, s.Dimensions)
	u.step = make(out)
	c.add(u)
	return out
}

// add adds a unit that nothing waits for.
func (c *compiler) add(u *unit) {
	u.rank = len(c.sorted)
	c.units, c.sorted = append(c.units, u), append(c.sorted, u)
}

// settle moves u, which waits for more than before or has taken in other units, among the sorted ones: behind all that it waits for,
// and before all that waits for it. Those that may be on the wrong side have ranks between two.
func (c *compiler) settle(u *unit, from, to int) {
	if from == to {
		return
	}
	c.searches++
	var before, after []*unit
	for _, x := range c.sorted[from : to+1] {
		waits := func(d *unit) bool { return d.root() == u || d.root().stamp == c.searches }
		switch {
		case x == u:
		case x.into == nil && slices.ContainsFunc(x.deps, waits):
			x.stamp = c.searches
			after = append(after, x)
		default:
			before = append(before, x)
		}
	}
	for i, x := range slices.Concat(before, []*unit{u}, after) {
		c.sorted[from+i], x.rank = x, from+i
	}
}

// reads notes that u reads v from outside.
func (c *compiler) reads(u *unit, v view) {
	u.reads = append(u.reads, v)
	if w := v.of.writer; w != nil && !slices.Contains(u.deps, w.root()) {
		u.deps = append(u.deps, w.root())
	}
}

// copy adds a unit that writes the elements of v one after another.
func (c *compiler) copy(v view, s shapes.Shape, id int) view {
	return c.single(id, s, []view{v}, func(out view) step { return newCopy(c.device.level, out, v) })
}

// depends reports whether u comes after w: it reads what w writes, or what a unit does that comes after w.
func (c *compiler) depends(u, w *unit) bool {
	c.searches++
	return c.search(u.root(), w.root())
}

func (c *compiler) search(u, w *unit) bool {
	if u == w {
		return true
	}
	if u.stamp == c.searches || u.rank < w.rank {
		return false
	}
	u.stamp = c.searches
	for _, d := range u.deps {
		if c.search(d.root(), w) {
			return true
		}
	}
	return false
}

// lower gives n a value: a view where that suffices, else a tensor and a unit that writes it.
func (c *compiler) lower(n *node) {
	if v, ok := c.seen(n); ok {
		c.values[n] = v
		return
	}
	if isElementwise(n.op) {
		c.values[n] = c.fuse(n)
		return
	}
	in := make([]view, len(n.in))
	for i, x := range n.in {
		in[i] = c.values[x]
	}
	switch n.op {
	case compute.OpTypeConstant:
		t := c.tensor(n.shape)
		t.place, t.data = inConstant, pointer(n.attr.(constant).data)
		c.values[n] = whole(t, n.shape.Dimensions)
	case compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceProduct,
		compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr:
		c.values[n] = c.reduction(n, in[0])
	case compute.OpTypeDotGeneral:
		c.values[n] = c.product(n, in[0], in[1])
	default:
		c.values[n] = c.single(n.id, n.shape, in, func(out view) step { return newStep(c.device.level, n, out, in) })
	}
}

// seen returns the value of an operation that only says where elements lie.
func (c *compiler) seen(n *node) (view, bool) {
	if len(n.in) != 1 {
		return view{}, false
	}
	x := c.values[n.in[0]]
	dims := n.shape.Dimensions
	switch n.op {
	case compute.OpTypeIdentity:
		return x, true
	case compute.OpTypeReshape:
		v, ok := x.reshape(dims)
		if !ok {
			v = c.copy(x, n.shape, n.id)
			v.dims = dims
		}
		return v, true
	case compute.OpTypeTranspose:
		return x.transpose(n.attr.(permute).axes), true
	case compute.OpTypeBroadcastInDim:
		return x.broadcast(dims, n.attr.(broadcast).axes), true
	case compute.OpTypeSlice:
		at := n.attr.(region)
		return x.slice(at.starts, at.strides, dims), true
	case compute.OpTypeReverse:
		return x.reverse(n.attr.(reversed).axes), true
	}
	return view{}, false
}
