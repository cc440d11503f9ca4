package gemm

import (
	"sync/atomic"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// Read loads all numbers of x and does nothing with them: the rate at which it does is what a matmul that goes through
// a large matrix once can reach.
func (k *Kernels) Read(p *pool.Pool, x []float32) {
	pieces := ceil(4*len(x), readPiece)
	p.For(pieces, func(i int) {
		part := x[i*readPiece/4 : min(len(x), (i+1)*readPiece/4)]
		k.level.read(unsafe.Pointer(unsafe.SliceData(part)), 4*len(part))
	})
}

// readAll reads so many bytes.
func readAll(p unsafe.Pointer, bytes int) {
	sum := uint32(0)
	for _, v := range unsafe.Slice((*uint32)(p), bytes/4) {
		sum |= v
	}
	sink.Store(sum)
}

// sink keeps the compiler from leaving out what is read.
var sink atomic.Uint32
