package main

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/model"
)

// place is a device with the weights.
type place struct {
	device compute.Backend
	params *model.Params
}

// openPlaces opens the devices and draws the same weights on each.
func openPlaces(o options, c *model.Config, matrices dtypes.DType) (list []place, err error) {
	for i := range o.devices {
		name := o.name
		if i > 0 {
			name = fmt.Sprintf("%s,device=%d", name, i)
		}
		device, err := openDevice(name)
		if err != nil {
			return nil, err
		}
		params, err := draw(device, c, matrices)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, place{device, params})
	}
	return list, nil
}
