package engine

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
)

// Adapter is one version of an adapter on the device. It is immutable: a training step makes a new one.
type Adapter struct {
	layout *lora.Adapter // names and shapes
	inputs []*tensors.Tensor
	key    string // adapters with equal keys share graphs
}

// name is equal for adapters that share graphs. It is "" for the base model.
func (a *Adapter) name() string {
	if a == nil {
		return ""
	}
	return a.key
}

// NewAdapter uploads an adapter to a device, for all engines on it.
func NewAdapter(device compute.Backend, a *lora.Adapter) (*Adapter, error) {
	ad := &Adapter{layout: a.Clone(), key: graphKey(a)}
	for _, p := range a.Params() {
		t, err := graphx.Upload(device, p.Data, p.Shape...)
		if err != nil {
			return nil, fmt.Errorf("engine: adapter %s: %w", p.Name, err)
		}
		ad.inputs = append(ad.inputs, t)
	}
	return ad, nil
}

// graphKey is equal for adapters of equal configuration and layers, whose graphs are equal.
func graphKey(a *lora.Adapter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v", a.Config())
	for _, l := range a.Layers() {
		b.WriteString(" " + l.Name)
	}
	return b.String()
}
