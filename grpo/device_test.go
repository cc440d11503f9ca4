package grpo

import (
	"github.com/gomlx/gomlx/core/tensors"
)

// vector copies values to a tensor of one axis.
func vector[T float32 | float64](values []T) *tensors.Tensor {
	return tensors.FromFlatDataAndDimensions(append([]T{}, values...), len(values))
}

// scalar makes a tensor without axes.
func scalar[T float32 | float64](value T) *tensors.Tensor { return tensors.FromScalar(value) }
