package engine

import (
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Adapter is one version of an adapter, or of all weights, on the device. It is immutable: a training step makes a new
// one.
type Adapter struct {
	weights *model.Params     // in place of those of the base model; nil for an adapter
	layout  *lora.Adapter     // only names and shapes are read; nil for all weights
	inputs  []*tensors.Tensor // its tensors, and then the norms of DoRA
	key     string            // adapters with equal keys share graphs
	id      *identity

	replicas []*Adapter // the same on the other devices of a pool
}

// on returns the adapter on the device of an engine of a pool.
func (a *Adapter) on(engine int) *Adapter {
	if a == nil || engine == 0 {
		return a
	}
	return a.replicas[engine-1]
}

// identity stands for an adapter where only the difference from others counts: it does not keep the tensors alive.
type identity struct{ _ byte }

// identity returns what stands for an adapter, and nil for the base model.
func (a *Adapter) identity() any {
	if a == nil {
		return nil
	}
	return a.id
}

// name is equal for adapters that share graphs. It is "" for the base model, and for other weights of its shapes.
func (a *Adapter) name() string {
	if a == nil {
		return ""
	}
	return a.key
}

// NewAdapter uploads an adapter, for all engines on the same base model.
func (e *Engine) NewAdapter(a *lora.Adapter) (*Adapter, error) { return e.loader.load(a) }

// NewWeights uploads weights of the shapes of the base model, in float32, from which requests are sampled in place of
// those of the base model.
func (e *Engine) NewWeights(w *model.Weights) (*Adapter, error) {
	params, err := w.Params(e.opts.Device)
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return &Adapter{weights: params, id: &identity{}}, nil
}

// NewAdapter uploads an adapter to a device, for all engines on it with the same base model, whose weights are params.
// For several adapters that of an [Engine] compiles fewer graphs.
func NewAdapter(device compute.Backend, c *model.Config, params *model.Params, a *lora.Adapter) (*Adapter, error) {
	return (&loader{device: device, config: c, params: params}).load(a)
}

// loader uploads the adapters of a base model. It is safe for concurrent use.
type loader struct {
	device compute.Backend
	config *model.Config
	params *model.Params

	mu    sync.Mutex
	norms *lora.Norms // made for the first adapter with DoRA
}

func (l *loader) load(a *lora.Adapter) (*Adapter, error) {
	ad := &Adapter{layout: a, key: a.LayoutKey(), id: &identity{}}
	for _, p := range a.Params() {
		t, err := graphx.Upload(l.device, p.Data, p.Shape...)
		if err != nil {
			return nil, fmt.Errorf("engine: adapter %s: %w", p.Name, err)
		}
		ad.inputs = append(ad.inputs, t)
	}
	if err := l.addNorms(ad); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return ad, nil
}

// addNorms adds the norms of DoRA to the inputs of an adapter.
func (l *loader) addNorms(a *Adapter) (err error) {
	if a.layout.NumNorms() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.norms == nil {
		if l.norms, err = lora.NewNorms(l.device); err != nil {
			return err
		}
	}
	weight := func(layer string) *tensors.Tensor { return l.params.Weight(l.config, layer) }
	norms, err := l.norms.Of(a.layout, a.inputs, weight)
	a.inputs = append(a.inputs, norms...)
	return err
}
