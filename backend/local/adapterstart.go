package local

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/lora"
)

// adapterStart is what a run starts from: the adapter of a folder, or a step of another run. The zero value is none.
type adapterStart struct {
	policy     policy
	digest     string // see policy.digest
	checkpoint string // of a fork: its folder, which has the optimizer too
}

// openStart reads the adapter in opts. have is the description of the run, or the zero value for a new one: a run can
// continue when the folder of its adapter, or the run that it is a fork of, is gone, with the digest that it recorded.
func (b *Backend) openStart(
	opts art.ModelOptions, have, want description, s *base,
) (adapterStart, error) {
	switch {
	case opts.Fork != "" && opts.Fork == have.Fork:
		return adapterStart{digest: have.AdapterSHA256}, nil
	case opts.Fork != "":
		return b.openFork(opts, want, s)
	case opts.Adapter == "":
		return adapterStart{}, nil
	}
	a, err := lora.Load(opts.Adapter)
	if err == nil {
		return adapterStart{policy: policy{adapter: a}, digest: adapterDigest(a)}, nil
	}
	if opts.Adapter == have.Adapter {
		return adapterStart{digest: have.AdapterSHA256}, nil
	}
	return adapterStart{}, adapterError(err)
}

// openFork reads the step of a run that a new one begins with.
func (b *Backend) openFork(opts art.ModelOptions, want description, s *base) (adapterStart, error) {
	ref, err := runs.ParseReference(opts.Fork, opts.Project)
	if err != nil {
		return adapterStart{}, err
	}
	source, err := runs.NewReader(ref.Dir(b.opts.Dir))
	if err != nil {
		return adapterStart{}, err
	}
	var have description
	if err := source.Model(&have); err != nil {
		return adapterStart{}, err
	}
	if !have.sameBase(want) {
		err := fmt.Errorf("%w: %s has the base %s, and the fork %s", art.ErrInvalid, ref, have.baseText(), want.baseText())
		return adapterStart{}, &art.Error{Op: "register", Err: err, Hint: "a fork keeps the base model: set Base to it"}
	}
	dir, err := source.Find(ref.Step)
	if err != nil {
		return adapterStart{}, err
	}
	p, err := readPolicy(dir, s)
	if err != nil {
		return adapterStart{}, checkpointError("register", dir, err)
	}
	return adapterStart{p, p.digest(), dir}, nil
}

// adapterError is the error for an adapter from which a run cannot start.
func adapterError(err error) error {
	return &art.Error{
		Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err),
		Hint: "set ModelOptions.Adapter to the folder of a LoRA adapter of this base model",
	}
}

// adapterDigest returns the SHA-256 of the values of an adapter: its rank, its alpha and the tensors of its layers. It
// does not depend on the path or the format of its files.
func adapterDigest(a *lora.Adapter) string {
	h := sha256.New()
	c := a.Config()
	fmt.Fprintf(h, "rank %d alpha %v\n", c.Rank, c.Alpha)
	if c.RankStabilized || len(c.Ranks)+len(c.Alphas) > 0 {
		fmt.Fprintf(h, "stabilized %v ranks %v alphas %v\n", c.RankStabilized, c.Ranks, c.Alphas)
	}
	if c.DoRA {
		fmt.Fprintln(h, "dora")
	}
	byText := lora.Config{Rank: c.Rank, Alpha: c.Alpha, RankStabilized: c.RankStabilized, Ranks: c.Ranks, Alphas: c.Alphas}
	for _, l := range a.Layers() {
		if scale := c.Scale(l.Name); scale != byText.Scale(l.Name) { // by the order of a file
			fmt.Fprintf(h, "scale %v\n", scale)
		}
		fmt.Fprintf(h, "%q %d %d\n", l.Name, l.In, l.Out)
		hashFloats(h, l.A)
		hashFloats(h, l.B)
		hashFloats(h, l.Magnitude)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashFloats(h hash.Hash, values []float32) {
	_ = binary.Write(h, binary.LittleEndian, values) // a hash never fails
}
