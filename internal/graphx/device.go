package graphx

import (
	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu"
)

// NewDevice returns the device that graphs run on.
func NewDevice() (compute.Backend, error) { return cpu.New(nil) }
