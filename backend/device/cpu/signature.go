package cpu

import (
	"fmt"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// sharedBytes is the size of the largest constant that is compared with others.
const sharedBytes = 1 << 10

// signature says what an operation computes: operations of one signature are one node of the graph. A parameter has none, nor
// has a large constant.
func signature(op compute.OpType, shape shapes.Shape, attr any, in []*node) (key string, ok bool) {
	b := strconv.AppendInt(nil, int64(op), 10)
	b = fmt.Append(b, " ", shape.DType, shape.Dimensions)
	for _, x := range in {
		b = strconv.AppendInt(append(b, ' '), int64(x.id), 10)
	}
	switch attr := attr.(type) {
	case parameterAttr:
		return "", false
	case constantAttr:
		if len(attr.data) > sharedBytes {
			return "", false
		}
		return string(append(append(b, ' '), attr.data...)), true
	case nil:
		return string(b), true
	}
	return string(fmt.Appendf(b, " %T%v", attr, attr)), true
}
