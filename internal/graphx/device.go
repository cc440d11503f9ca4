package graphx

import (
	"errors"
	"reflect"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// NewDevice returns the device that graphs run on: GoMLX's Go device with as many goroutines as it asks for. With the
// bound that it sets itself, large products wait for workers that other nodes of the graph hold, for ever.
//
// The bound is set on the exported field: the configuration string "parallelism=-1" would do the same and print a line
// on the standard output of the program.
func NewDevice() (compute.Backend, error) {
	device, err := gobackend.New("")
	if err != nil {
		return nil, err
	}
	set := reflect.Indirect(reflect.ValueOf(device)).FieldByName("Workers").MethodByName("SetMaxParallelism")
	if !set.IsValid() {
		return nil, errors.New("graphx: the Go device has no Workers.SetMaxParallelism: another version of compute?")
	}
	set.Call([]reflect.Value{reflect.ValueOf(-1)})
	return device, nil
}
