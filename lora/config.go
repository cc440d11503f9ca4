package lora

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Defaults of [Config], ART's.
const (
	DefaultRank  = 8
	DefaultAlpha = 16
)

// DefaultTargets returns the linear layers of a Llama or Qwen block.
func DefaultTargets() []string {
	return []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
}

// Config describes an adapter. Zero fields are the defaults.
type Config struct {
	// Rank is the inner dimension. Default 8.
	Rank int
	// Alpha scales the adapter, see Scale. Default 16.
	Alpha float64
	// Targets are the last name parts of the layers that get an adapter. Default: those of DefaultTargets that the model
	// has.
	Targets []string
}

// Scale returns what B·A is multiplied by,
//
//	Alpha / Rank
func (c Config) Scale() float64 {
	c = c.withDefaults()
	return c.Alpha / float64(c.Rank)
}

// Validate lists every problem.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Rank < 0 {
		errs = append(errs, fmt.Errorf("lora: rank is %d, it must be positive", c.Rank))
	}
	if math.IsNaN(c.Alpha) || math.IsInf(c.Alpha, 0) || c.Alpha < 0 {
		errs = append(errs, fmt.Errorf("lora: alpha is %v, it must be finite and positive", c.Alpha))
	}
	for i, target := range c.Targets {
		switch {
		case target == "" || strings.Contains(target, "."):
			errs = append(errs, fmt.Errorf("lora: target %q must be the last part of a layer's name, such as q_proj", target))
		case slices.Contains(c.Targets[:i], target):
			errs = append(errs, fmt.Errorf("lora: target %q is listed twice", target))
		}
	}
	return errors.Join(errs...)
}

// withDefaults returns a copy with zero fields filled in.
func (c Config) withDefaults() Config {
	if c.Rank == 0 {
		c.Rank = DefaultRank
	}
	if c.Alpha == 0 {
		c.Alpha = DefaultAlpha
	}
	if len(c.Targets) == 0 {
		c.Targets = DefaultTargets()
	}
	c.Targets = slices.Clone(c.Targets)
	return c
}

// lastPart returns what follows the last dot of a layer's name.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
