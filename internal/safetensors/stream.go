package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Source is a tensor whose data is produced while it is written.
type Source struct {
	Name  string
	DType DType
	Shape []int
	// Write writes the data, as many bytes as DType and Shape require.
	Write func(w io.Writer) error
}

// Size returns the size of the data in bytes. A shape or type that no file can have is an error.
func (s Source) Size() (uint64, error) { return byteSize(s.DType, s.Shape) }

// WriteSources is [Write] for tensors that need not all be in memory at once.
func WriteSources(w io.Writer, sources []Source, metadata map[string]string) error {
	header, err := encodeHeader(sources, metadata)
	if err != nil {
		return err
	}
	prefix := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	if _, err := w.Write(append(prefix, header...)); err != nil {
		return err
	}
	for _, s := range sources {
		size, err := s.Size()
		if err != nil {
			return err
		}
		counted := &countingWriter{w: w}
		if err := s.Write(counted); err != nil {
			return err
		}
		if counted.n != size {
			return fmt.Errorf("safetensors: tensor %q: shape %v of %s needs %d bytes and there are %d", s.Name, s.Shape, s.DType,
				size, counted.n)
		}
	}
	return nil
}

// countingWriter counts what it passes on.
type countingWriter struct {
	w io.Writer
	n uint64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n) //nolint:gosec // it is not negative
	return n, err
}
