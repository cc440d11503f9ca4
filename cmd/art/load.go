package main

import (
	"errors"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
)

// loaded is a model on a device, with an adapter or without.
type loaded struct {
	source    source
	device    compute.Backend
	config    *model.Config
	tokenizer *tokenizer.Tokenizer
	params    *model.Params
	adapter   *engine.Adapter
}

// load uploads the model that MODEL names to a device, and the adapter of a folder or a run, if one is named.
func load(name, adapter string) (m *loaded, err error) {
	s, err := find(name)
	if err == nil {
		s, err = s.with(adapter)
	}
	if err != nil {
		return nil, err
	}
	base, err := basemodel.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	device, err := cpu.New(nil)
	if err != nil {
		return nil, err
	}
	m = &loaded{source: s, device: device, config: base.Config, tokenizer: base.Tokenizer}
	if err := m.upload(base); err != nil {
		device.Finalize()
		return nil, err
	}
	return m, nil
}

// upload copies the weights to the device, and the adapter, which is read first: that may fail.
func (m *loaded) upload(base *basemodel.Base) error {
	var a *lora.Adapter
	var err error
	if m.source.adapter != "" {
		if a, err = loadAdapter(m.source.adapter, m.config); err != nil {
			return err
		}
	}
	if m.params, err = base.Params(m.device); err == nil && a != nil {
		m.adapter, err = engine.NewAdapter(m.device, m.config, m.params, a)
	}
	return err
}

// loadAdapter reads an adapter, which must fit the model.
func loadAdapter(dir string, c *model.Config) (*lora.Adapter, error) {
	a, err := lora.Load(dir)
	if err != nil {
		return nil, err
	}
	var layers []lora.LayerShape
	for _, l := range c.Adaptable() {
		layers = append(layers, lora.LayerShape(l))
	}
	return a, a.Check(layers)
}

// texts returns each id as text. A token that is only a part of a character becomes U+FFFD.
func (m *loaded) texts(ids []int32) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = m.tokenizer.Decode([]int32{id}, false)
	}
	return out
}
