//go:build cgo

package xla_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art/backend/device/xla"
	"github.com/goart-dev/art/backend/local"
)

// A program that imports the package trains on a GPU by naming it. It is told what is missing.
func Example() {
	backend, err := local.Open(context.Background(), &local.Options{Device: "xla:cuda"})
	if errors.Is(err, xla.ErrNoPlugin) {
		for _, plugin := range xla.Plugins() {
			fmt.Println("found", plugin.Device, plugin.Platform, plugin.Err)
		}
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Close()
}
