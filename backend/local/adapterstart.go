package local

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/lora"
)

// adapterStart is the adapter of a folder from which a run starts. The zero value is none.
type adapterStart struct {
	adapter *lora.Adapter
	digest  string // see adapterDigest
}

// openStart reads the adapter in opts. have is the description of the run, or the zero value for a new one: a run can
// continue when the folder of its adapter is gone, with the digest that it recorded.
func openStart(opts art.ModelOptions, have description) (adapterStart, error) {
	if opts.Adapter == "" {
		return adapterStart{}, nil
	}
	a, err := lora.Load(opts.Adapter)
	if err == nil {
		return adapterStart{a, adapterDigest(a)}, nil
	}
	if opts.Adapter == have.Adapter {
		return adapterStart{digest: have.AdapterSHA256}, nil
	}
	return adapterStart{}, adapterError(err)
}

// adapterError is the error for an adapter from which a run cannot start.
func adapterError(err error) error {
	return &art.Error{
		Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err),
		Hint: "set ModelOptions.Adapter to the folder of a LoRA adapter of this base model",
	}
}

// adapterDigest returns the SHA-256 of the values of an adapter: its rank, its alpha and the matrices of its layers. It
// does not depend on the path or the format of its files.
func adapterDigest(a *lora.Adapter) string {
	h := sha256.New()
	fmt.Fprintf(h, "rank %d alpha %v\n", a.Config().Rank, a.Config().Alpha)
	for _, l := range a.Layers() {
		fmt.Fprintf(h, "%q %d %d\n", l.Name, l.In, l.Out)
		hashFloats(h, l.A)
		hashFloats(h, l.B)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashFloats(h hash.Hash, values []float32) {
	_ = binary.Write(h, binary.LittleEndian, values) // a hash never fails
}
