package cpu

import (
	"fmt"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

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
