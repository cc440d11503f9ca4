package cpu

import (
	"unsafe"

	"github.com/gomlx/compute"
)

// largestConstant is the size in bytes of what is computed at compile time and kept.
const largestConstant = 16 << 20

// pointer returns the address of data, which is aligned.
func pointer(data []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(data)) }

// foldConstants computes what does not depend on parameters, as far as others read it, and returns the values.
func foldConstants(d *Device, used, outputs []*node) (map[*node]view, error) {
	fixed := map[*node]bool{}
	for _, n := range used {
		fixed[n] = n.op != compute.OpTypeParameter && n.shape.Size()*n.shape.DType.Size() <= largestConstant || isView(n.op)
		for _, x := range n.in {
			fixed[n] = fixed[n] && fixed[x]
		}
	}
	var wanted []*node
	seen := map[*node]bool{}
	want := func(n *node) {
		for isView(n.op) {
			n = n.in[0]
		}
		if n.op != compute.OpTypeConstant && !seen[n] {
			seen[n] = true
			wanted = append(wanted, n)
		}
	}
	for _, n := range used {
		for _, x := range n.in {
			if fixed[x] && !fixed[n] {
				want(x)
			}
		}
	}
	for _, n := range outputs {
		if fixed[n] {
			want(n)
		}
	}
	known := map[*node]view{}
	if len(wanted) == 0 {
		return known, nil
	}
	e, err := newCompiler(d).compile(nil, wanted, known)
	if err != nil {
		return nil, err
	}
	values, err := e.Execute(nil, nil, 0)
	if err != nil {
		return nil, err
	}
	for i, n := range wanted {
		mem := values[i].(*Buffer).take()
		t := &tensor{kind: n.shape.DType, size: n.shape.DType.Size(), count: n.shape.Size(), place: inConstant, data: mem.base}
		known[n] = whole(t, n.shape.Dimensions)
	}
	return known, nil
}

// isView reports whether an operation only says where elements lie.
func isView(op compute.OpType) bool {
	switch op {
	case compute.OpTypeIdentity, compute.OpTypeReshape, compute.OpTypeTranspose, compute.OpTypeBroadcastInDim,
		compute.OpTypeSlice, compute.OpTypeReverse:
		return true
	}
	return false
}
