package exec

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// pieces says how a row of float32 is reduced in pieces, with the bits of reducing it at once.
type pieces struct {
	add      func(w *vec.Lanes, x []float32) float32
	whole    func(x []float32) float32
	identity float32
	chunked  bool // a row longer than ir.SumChunk is reduced chunk by chunk
}

// partial is a reduction under way.
type partial struct {
	lanes  vec.Lanes
	done   int       // elements of the chunk
	chunks []float32 // results of those that are finished
}

func (p *pieces) begin(a *partial) {
	a.done, a.chunks = 0, a.chunks[:0]
	for i := range a.lanes {
		a.lanes[i] = p.identity
	}
}

// next adds a piece, none of which reaches from a chunk into the next, and returns the result so far at the end of a
// row.
func (p *pieces) next(a *partial, x []float32, last bool) float32 {
	value := p.add(&a.lanes, x)
	a.done += len(x)
	switch {
	case last && len(a.chunks) == 0:
		return value
	case last:
		a.chunks = append(a.chunks, value)
		return p.whole(a.chunks)
	case p.chunked && a.done == ir.SumChunk:
		chunks := append(a.chunks, value)
		p.begin(a)
		a.chunks = chunks
	}
	return value
}
