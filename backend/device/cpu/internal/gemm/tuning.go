package gemm

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/pages"
)

// These are the tuning constants of GEMM, each with the measurement that chose it: "log 22" is the entry of that day of
// November 2026 in docs/log/2026-11.md. "Not measured" says that no comparison with other values is recorded. Except
// for [Block] none changes a bit of a result.

// Block is the length of the fixed blocks of the contracted axis. The rounding errors of random numbers grow with the
// root of the length of a chain and of the number of blocks: 512 is about the root of a vocabulary, and is short enough
// for what kernels read of B in a block to stay in a cache.
//
// Measured (log 23, fixed blocks of 512): with K = 151,936 the RMS error is 4.8e-7, with blocks of 256 5.5e-7, and with
// one running sum 6.5e-6; time 0.95 to 1.05 of that without blocks. For the blocks of square GEMMs 256, 352 and 384
// gain nothing, and 1,024 takes them to 0.65 to 1.01 (log 22, 23).
const Block = 512

// Prefetch distances of B. What comes from memory is prefetched twice, early into L2 and then into L1: with one stage
// the prefetches of a few microseconds wait for the memory, and what is behind them waits too.
//
// Measured (log 21, a CPU device of our own): packed [8, 896] x [896, 151936] reaches 0.53 of memory bandwidth without
// prefetch, 0.65 to 0.76 with one stage of 1 to 16 KB, 0.88 with two of 8 and 2 KB. In square GEMMs distances from 0 to
// 4 KB are within 2 % (log 22), and 1,536 bytes add 1 to 2 % to none (log 23).
const (
	bytesAhead = 2048  // where rows follow one another
	bytesEarly = 12288 // the same, the first stage; 12 KB in place of 8 is not measured
	largeAhead = 1536  // of large matmuls, whose B is mostly in L2
	rowsAhead  = 16    // rows of a B in place; 32 to 128 did not help (log 21)
	wideAhead  = 8     // the same for wide kernels; not measured
)

// Few rows and a packed B need one stage of prefetches where the memory or the kernels are quick enough.
//
// Measured (log 22): on a Zen 4, which prefetches contiguous memory by itself, 1 to 6 rows reach 0.85 to 1.01 of memory
// bandwidth without the prefetches of this package, and 0.77 to 0.9 with them; from 8 rows on it is the reverse. On a
// Cascade Lake one row reaches 0.97 to 0.99 with one stage of 4 KB and 0.93 to 0.95 with two. A Sapphire Rapids gains
// from two stages from three rows on. The limits for bfloat16 and for AVX2 are not measured.
var (
	oneStageRows     = byProcessor(6, 14, 2)        // most rows
	oneStageRowsHalf = byProcessor(1, 8, 1)         // the same for bfloat16
	oneStageAhead    = byProcessor(256, 4096, 4096) // bytes
)

const oneStageRowsAVX2 = 2 // most rows

// byProcessor is the first number if the processor is one of AMD's, the second if it is a Skylake server, and the third
// if it is another.
func byProcessor(amd, skylake, others int) int {
	switch {
	case cpuid.AMD():
		return amd
	case cpuid.SkylakeServer():
		return skylake
	}
	return others
}

// Kernels that transpose B take tiles of 16 x 16, which fit into registers.
//
// Measured (log 22): 134 instructions for 256 numbers in place of 380; 1 and 2 rows x [896, 4864] of transposed weights
// reach 0.95 and 0.96 of PyTorch in place of 0.68 and 0.76.
const (
	transposeSize  = 16      // columns of a kernel that transposes B, and rows that it takes at once
	transposeBytes = 1 << 18 // of B for a call of it, which stays short; not measured
)

// Tasks of matmuls that are not large. Not measured where nothing is said.
const (
	skinny      = 64      // most rows for which the panels of B are gone through once
	taskWork    = 50_000  // least multiply-adds that are worth a task of their own
	shortWork   = 1 << 27 // most multiply-adds of a matmul of which each worker takes one piece
	taskRows    = 1024
	taskColumns = 512
	// with a packed B: waiting falls from 7 and 15 % to 3 and 7 % (log 21); 128 and 512 do not help (22)
	packedColumns = 256
	longColumns   = 2048 // of a task that goes through B once
	narrowColumns = 16   // most columns of which a kernel computes all rows of A
	packRows      = 4    // most rows of A that are not packed for panels of B
	packColumns   = 256  // least columns for which rows of A are packed
)

// Blocks of the contracted axis, each a multiple of Block. Not measured where nothing is said.
//
// rereadAVX2: the matrices of Qwen3-0.6B times 8 and 16 rows take 0.75 and 0.79 of the time of longBlock on a Zen 3
// with 512 KB of L2, and times 64 rows as long; those of bfloat16, whose panels are half as long, do not gain (log 27).
const (
	skinnyBlock = 1024     // where a panel of B is in one piece
	rereadAVX2  = Block    // where several groups of rows of A read a panel of a packed B: it and the next fit into L2
	longBlock   = 4096     // where B is used in place, panel by panel: a call of a kernel stays short
	largeBytes  = 32 << 20 // of B, which comes from memory
	// rows of a large B that are read in parallel: the processor tracks some 32 pages, and prefetches what comes in them.
	// A row times [896, 151936] takes 21 ms in place of 51 (log 22)
	streams = 40
)

// codedRows is the most rows of A that are multiplied by codes in registers, eight after eight; more are multiplied by
// numbers in L1.
//
// Measured with one thread and matrices from memory: on a Zen 5 registers take 0.77 of the time of L1 for 12 rows of
// Q4_K, 0.86 for 16, 0.95 for 32 and as long for 64. A Sapphire Rapids, which shifts and looks up codes at half the
// rate of its multiply-adds, takes 1.1 times as long for 16.
var codedRows = byProcessor(32, 8, 8)

// codedPart is how many rows of a panel of codes are made numbers at once: 16 KB, which stay in L1 beside the rows of
// A. Other values are not measured.
const codedPart = 128

// Rows of A that are whole pages apart share a set of L1.
const (
	pageBytes = 4096
	setRows   = 10 // that a set of L1 has room for, beside B; not measured
)

// Large matmuls, whose operands are packed once for all workers (log 22: PyTorch over ours goes from 0.81 to 0.83 to
// 0.85 to 0.93 at 2,048 cubed). Not measured where nothing is said.
const (
	largeColumns = 256     // least of a large matmul: less are at 0.81 to 0.97 (log 22),
	largeDepth   = 64      // and least length of its contracted axis: otherwise packing is much of the work
	partRows     = 2048    // most rows of a part
	partColumns  = 2048    // and most columns, if they are packed
	partNumbers  = 2 << 20 // that are packed at once, if there are no more in 512 rows of B: 8 MB
	partTasks    = 4       // for each worker at least, since workers are not equally fast
	taskGroups   = 56      // at most: some 500 rows; half or twice as many: 0.93 to 1.01 (log 23)
	taskPairs    = 2       // or little more: a block of B and what comes next fit into L2, and workers end together
	sharePairs   = 4       // least of a worker's share of the columns; a share each takes waiting from 7 to 3 % (log 22)
	repackPairs  = 1       // where tasks pack their columns of B,
	repackGroups = 112     // and have more rows for that, at most
	unitGroups   = 8       // groups of rows of A that a worker packs at once
	unitRows     = 32      // rows of B likewise: 0.75 to 0.85 of the time from 1,024 to 4,096 cubed (log 22)
)

// groupShares is how many tasks a worker has at least of matmuls that are computed at once: a larger one is computed by
// all workers, or they would wait for the one that has it. Not measured.
const groupShares = 8

// Broad tiles are 9 x 48: 12 vector loads for 27 multiply-adds, where 14 x 32 takes 16 for 28. Tiles of 8 x 48 and 6 x
// 64 did not help (log 22).
const (
	broadRows    = 9
	broadColumns = 48
	broadPair    = 96 // columns after which a tile begins with a panel again
)

// Streams: one row times a B in place. One load instruction for each of 14 rows takes the row times [896, 151936] from
// 23.7 to 12.5 ms on a Zen 4 (log 22). The others are not measured.
const (
	streamRows    = 14      // of B that a kernel reads at once, at most,
	streamColumns = 16      // and columns that it computes at once
	streamTask    = 512     // least columns of a task, if each worker has one,
	streamLong    = 4096    // and most
	pageStreams   = 8       // most rows at once that are whole pages apart: a set of L1 has room for 8 or 12
	streamBytes   = 1 << 20 // of B for a call of a kernel, which stays short
)

// Few columns are computed as rows of the transposed matmul.
//
// Measured (log 22): [256, 1024] x [1024, 8] takes 47 us in place of 100, and [2048, 896] x [896, 8] 320 in place of
// 520.
const (
	swapAlways  = 4   // most columns for any layout of A; not measured
	swapColumns = 12  // most columns for which rows of A are transposed, to be columns of the transposed matmul,
	swapDepth   = 256 // and least length of those; not measured
	swapMost    = 14  // most columns for contiguous columns of A; not measured
)

// swapRows is the least rows of A times contiguous columns of B that are columns of the transposed matmul, where no
// kernels transpose B.
//
// Measured (log 27, AVX2): 16 rows times keys that come from memory take 14.9 ms in place of 21.8, and 8 rows 12.4 in
// place of 15.5; with 6 both take as long, and with more than a tile has columns it takes longer.
const swapRows = 7

// Memory of packed operands.
//
// Measured (log 23): packing both operands of 1,024 cubed between two layers takes 1.1 ms in huge pages, and 2.8
// without.
const (
	leastNumbers = 1 << 14         // of a buffer; not measured
	hugeNumbers  = pages.Huge / 16 // least of a buffer that takes whole huge pages
)

// readPiece is how many bytes a call of a kernel reads: microseconds, since Go cannot interrupt it. Not measured.
const readPiece = 1 << 18

// Products of integers, on a Zen 5 with 1 MB of L2, Q4_K and Q6_K [1536, 8960] and its transpose, one thread: 6 rows of
// a kernel reach 0.8 of what its multiplications allow.
//
// Measured: 512 rows take the least time with 256 or 512 rows at once, and 0.9 to 0.95 of the speed with 64. Records
// that are read panel by panel from L3 instead of block by block are within 5 %. The others are not measured.
const (
	integerMost  = 256     // rows of A that are rounded at once, at most
	integerEach  = 4       // tasks of a worker
	integerLeast = 32      // rows of a task at least, where there are few columns
	integerCache = 1 << 18 // most bytes of records that a task reads again and again
	roundNumbers = 1 << 15 // of A that a task rounds, or little more
)
