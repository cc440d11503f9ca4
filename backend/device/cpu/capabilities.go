package cpu

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// Capabilities lists the operations and types. Functions, loops and shapes that are not known when a graph is built are
// missing.
func (d *Device) Capabilities() compute.Capabilities {
	c := compute.Capabilities{Operations: map[compute.OpType]bool{}, DTypes: map[dtypes.DType]bool{}}
	for t := range ir.DataTypes {
		c.DTypes[t] = true
	}
	for op := range compute.OpTypeLast {
		if ir.IsElementwise(op) {
			c.Operations[op] = true
		}
	}
	for _, op := range others {
		c.Operations[op] = true
	}
	return c
}

// others are the operations that are not element-wise.
var others = []compute.OpType{
	compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIdentity, compute.OpTypeReshape,
	compute.OpTypeTranspose,
	compute.OpTypeBroadcastInDim, compute.OpTypeSlice, compute.OpTypeReverse, compute.OpTypeConcatenate, compute.OpTypePad,
	compute.OpTypeGather, compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin,
	compute.OpTypeDynamicSlice, compute.OpTypeDynamicUpdateSlice, compute.OpTypeConvertDType, compute.OpTypeWhere,
	compute.OpTypeClamp, compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin,
	compute.OpTypeReduceProduct, compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr, compute.OpTypeArgMinMax,
	compute.OpTypeCumSum, compute.OpTypeDotGeneral, compute.OpTypeIota, compute.OpTypeOptimizationBarrier,
	compute.OpTypeSchedulingBarrier,
}
