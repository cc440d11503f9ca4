package gemm

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/fma"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// A product with a quantized matrix whose [Packed.Int8] is set rounds the rows of A to 8 bits. 32 numbers x of a row,
// from a multiple of 32 on, become integers q with a scale:
//
//	a = max|x| / 127        q = x·(1/a), rounded to even
//
// A chain goes through the groups of 16 or 32 rows of B that share the scales d·s and m·n, in their order:
//
//	c = fma((d·s)·a, Σ t[code]·q, c)
//	c = fma(−m·n, a·Σ q, c)           where something is subtracted
//
// The sums of integers are exact, and the fixed blocks of the contracted axis are those of the package: an element has
// the same bits whatever the rows beside it, the number of workers and the instruction set. Where a is no normal number
// the 32 count as zero; where an x is infinite or NaN the result is NaN.
//
// Kernels multiply unsigned codes u = t[code] + bias, so their sums begin with −bias·Σ q.

// record is 32 numbers of a row of A in 8 bits.
type record struct {
	q     [records]int8
	a     float32
	start [2]int32   // −bias·Σ q of each group of 16 columns, or in [0] of 32
	sum   [2]float32 // a·Σ q likewise
	_     [3]int32   // a whole line of memory
}

const (
	records      = 32 // numbers of a record
	recordBytes  = 64
	lineBytes    = 64 // of memory
	blockRecords = Block / records
)

// rounding tells a kernel to round numbers of a row of A to records.
type rounding struct {
	dst, src    unsafe.Pointer
	count, half int // records; 1: groups are of 16
	bias        int
}

// unpacking tells a kernel to store the unsigned codes of some tiles of a panel, [records][8][32][4]uint8: dword (i, l)
// is rows 4i to 4i+3 of column l.
type unpacking struct {
	dst           unsafe.Pointer
	codes, fifths unsafe.Pointer // of the first tile
	table         unsafe.Pointer // [16]uint8: codes of 4 bits
	tiles, count  int            // number of tiles, and records of a tile
	step          int            // bytes from the end of a tile's codes to the next tile's
	fifthStep     int            // and the same for fifth bits
	bias          int            // of codes of 8 bits
	kernel        int            // 0, 1 and 2 for 4, 5 and 8 bits
}

// summing tells a kernel to multiply records of some rows of A by unsigned codes.
type summing struct {
	a, c       unsafe.Pointer
	aRow, cRow int            // bytes from a row to the next
	codes      unsafe.Pointer // of unpacking
	scales     unsafe.Pointer // of scaling
	count      int            // records of a row, at least 1
	rows       int
	half, min  int // 1: groups are of 16; something is subtracted
	mode       mode
	lanes      int     // columns of C that exist, as bits
	ahead      uintptr // what is prefetched, which may be behind the matrix,
	lines      int     // and lines of it for a record
	kernel     int     // rows - 1, and the most rows more if half, and twice that for each class
}

// integerScratch is what a worker needs for a product of integers.
type integerScratch struct {
	rounding  rounding
	unpacking unpacking
	summing   summing
	codes     buffer
}

// setUnsigned chooses the unsigned codes.
func (q *quantized) setUnsigned() {
	numbers := q.small[:min(1<<q.Bits, len(q.small))]
	if q.Bits == 8 {
		numbers = []int8{-128, 127}
		if q.Super {
			numbers = []int8{-32, 31} // of 6 bits
		}
	}
	least, most := int(slices.Min(numbers)), int(slices.Max(numbers))
	q.bias = -least
	for most+q.bias >= 16<<q.class {
		q.class++
	}
	if q.class >= 3 {
		q.bias, q.class = 128, 3 // kernels may take them as signed
	}
	for i := range q.unsigned {
		q.unsigned[i] = uint8(int(q.small[i]) + q.bias)
	}
}

// half reports whether groups are of 16, as a number for kernels.
func (q *quantized) half() int {
	if q.Group < records {
		return 1
	}
	return 0
}

// ofIntegers reports whether rows of A are rounded.
func (g *call) ofIntegers() bool {
	p := g.b.packed
	return p != nil && p.Int8 && !g.b.transposed && g.m > 0 && g.n > 0 && g.k > 0
}

// integers computes a product of integers, some rows of A at a time.
func (k *Kernels) integers(p *pool.Pool, g call) {
	g.level = k.level
	g.check()
	packs := k.packs.get()
	defer k.packs.put(packs)
	for i := 0; i < g.m; i += integerMost {
		part := g
		part.m = min(integerMost, g.m-i)
		part.a.Data, part.c.Data = g.a.Data[i*g.a.Row:], g.c.Data[i*g.c.Row:]
		rows := packs.left.take(part.m * part.k / records * recordBytes / 4)
		k.round(p, &part, rows)
		tasks := integerTasks(&part, p.Workers())
		k.eachTask(p, tasks.across*tasks.down, func(s *scratch, i int) {
			from, to := part.share(i%tasks.across, tasks.across)
			first, end := part.m*(i/tasks.across)/tasks.down, part.m*(i/tasks.across+1)/tasks.down
			part.integerBlocks(s, rows, tileRun{first, end - first, 1}, from, to)
		})
	}
}

// eachTask calls f for all of [0, n), by the workers of a pool.
func (k *Kernels) eachTask(p *pool.Pool, n int, f func(s *scratch, i int)) {
	if n > 1 {
		k.each(p, n, f)
		return
	}
	s := k.free.get()
	f(s, 0)
	k.free.put(s)
}

// integerTasks cuts the columns of a product into tasks, and its rows where there are few columns.
func integerTasks(g *call, workers int) (tasks struct{ across, down int }) {
	want := 1
	if workers > 1 {
		want = max(1, min(integerEach*workers, g.m*g.n*g.k/taskWork))
	}
	tasks.across = min(want, panels(g.n))
	tasks.down = min(ceil(want, tasks.across), ceil(g.m, integerLeast))
	return tasks
}

// share is the columns of one of some tasks.
func (g *call) share(i, tasks int) (from, to int) {
	all := panels(g.n)
	return all * i / tasks * panel, min(g.n, all*(i+1)/tasks*panel)
}

// recordsAt is where the records of a row are in a block of the contracted axis: blocks follow one another, and in them
// rows.
func (g *call) recordsAt(row, block int) int {
	count := g.k / records
	first := block * blockRecords
	return (first*g.m + row*min(blockRecords, count-first)) * recordBytes / 4
}

// round rounds the rows of A.
func (k *Kernels) round(p *pool.Pool, g *call, rows []float32) {
	each := max(1, roundNumbers/g.k)
	k.eachTask(p, ceil(g.m, each), func(s *scratch, i int) {
		for row := i * each; row < min(g.m, (i+1)*each); row++ {
			x := g.a.Data[row*g.a.Row:]
			if g.a.Col != 1 {
				x = s.a.take(g.k)
				copyView(View{x, 0, 1}, View{g.a.Data[row*g.a.Row:], 0, g.a.Col}, 1, g.k)
			}
			q := g.b.packed.quantized
			for at := 0; at < g.k; at += Block {
				r := &s.integer.rounding
				*r = rounding{
					dst: unsafe.Pointer(&rows[g.recordsAt(row, at/Block)]), src: unsafe.Pointer(&x[at]),
					count: min(Block, g.k-at) / records, half: q.half(), bias: q.bias,
				}
				if g.level.round != nil {
					g.level.round(r)
				} else {
					r.run()
				}
			}
		}
	})
}

// run is the kernel in Go.
func (t *rounding) run() {
	const infinite, normal = 0x7f800000, 1.0 / (1 << 126)
	src := unsafe.Slice((*float32)(t.src), t.count*records)
	dst := unsafe.Slice((*record)(t.dst), t.count)
	for i := range dst {
		x, most := src[i*records:][:records], uint32(0)
		for _, v := range x {
			most = max(most, math.Float32bits(v)&^(1<<31))
		}
		r := &dst[i]
		*r = record{}
		switch a := math.Float32frombits(most) / 127; {
		case most >= infinite:
			r.a = float32(math.NaN())
			r.sum = [2]float32{r.a, r.a}
		case a >= normal:
			r.set(x, a, t)
		}
	}
}

// set rounds numbers with the scale a.
func (r *record) set(x []float32, a float32, t *rounding) {
	r.a = a
	inverse := 1 / a
	var sums [2]int32
	for j, v := range x {
		r.q[j] = int8(math.RoundToEven(float64(float32(v * inverse))))
		sums[j/16*t.half] += int32(r.q[j])
	}
	for g, sum := range sums {
		r.start[g] = -int32(t.bias) * sum //nolint:gosec // 128 at most
		r.sum[g] = a * float32(sum)
	}
}

// integerBlocks computes rows and columns [from, to) of C. Where the records of the rows do not fit into a cache, that
// is one block of the contracted axis after another.
func (g *call) integerBlocks(s *scratch, rows []float32, run tileRun, from, to int) {
	blocks, count := ceil(g.k, Block), panels(to-from)
	byBlock := run.height*g.k/records*recordBytes > integerCache
	for i := range blocks * count {
		j, block := i/blocks, i%blocks
		next := 0 // bytes from a part of a panel to what is needed after it: that follows, or is in the next panel
		if byBlock {
			j, block = i%count, i/count
			next = g.k / g.b.packed.quantized.tile * g.b.packed.quantized.bytes
		}
		g.integerPanel(s, rows, run, integerPart{from + j*panel, block, next})
	}
}

// integerPart is a block of the contracted axis of the panel that begins with a column, and the bytes from there to the
// part that is needed after it; 0: it follows.
type integerPart struct{ column, block, next int }

// integerPanel multiplies rows by a part of a panel. Kernels prefetch the part that is needed after it.
func (g *call) integerPanel(s *scratch, rows []float32, run tileRun, part integerPart) {
	p, column, at := g.b.packed, part.column, part.block
	q, k0 := p.quantized, at*Block
	b := block{call: g, s: s, k0: k0, kc: min(Block, g.k-k0)}
	t := &s.integer.summing
	*t = summing{
		aRow: b.kc / records * recordBytes, cRow: 4 * g.c.Row, codes: b.unpack(p, column), scales: b.panelScales(p, column),
		count: b.kc / records, half: q.half(), mode: g.modeAt(k0), lanes: 1<<min(panel, g.n-column) - 1,
	}
	if q.Min {
		t.min = 1
	}
	most := max(1, g.level.sumRows)
	bytes := b.kc / q.tile * q.bytes
	left := ceil(bytes, lineBytes)
	t.ahead = uintptr(unsafe.Pointer(&p.tileAt(k0, column)[0])) + uintptr(max(bytes, part.next))
	each := ceil(left, t.count*ceil(run.height, most))
	for _, r := range splitRows(run.height, most) {
		t.rows, t.kernel = r.height, r.height-1+most*t.half
		if g.level.sumClasses {
			t.kernel += 2 * most * q.class
		}
		for i := range r.count {
			row := run.row + r.row + i*r.height
			t.a, t.c = unsafe.Pointer(&rows[g.recordsAt(row, at)]), unsafe.Pointer(&g.c.Data[row*g.c.Row+column])
			t.lines = min(each, ceil(max(left, 0), t.count))
			g.sum(s, t, min(panel, g.n-column))
			t.ahead, left = t.ahead+uintptr(t.lines*t.count*lineBytes), left-t.lines*t.count
		}
	}
}

// sum multiplies rows by a part of a panel, of which so many columns exist.
func (g *call) sum(s *scratch, t *summing, width int) {
	switch {
	case g.level.sum == nil:
		t.run()
	case g.level.masks && !g.level.sumClasses || width == panel:
		g.level.sum(t)
	default: // in memory of its own
		to, row, c := t.c, t.cRow, s.edge[:t.rows*panel]
		t.c, t.cRow = unsafe.Pointer(&c[0]), 4*panel
		for i := range t.rows {
			copy(c[i*panel:], floats(unsafe.Add(to, i*row), width))
		}
		g.level.sum(t)
		for i := range t.rows {
			copy(floats(unsafe.Add(to, i*row), width), c[i*panel:])
		}
		t.cRow = row
	}
}

// panelScales is the scales of the block's part of a panel.
func (b *block) panelScales(p *Packed, j int) unsafe.Pointer {
	q := p.quantized
	if b.level.scales != nil {
		b.s.scaling = q.scaling(unsafe.Pointer(&p.tileAt(b.k0, j)[0]), b.kc/q.tile, q.tile/q.Group)
		return b.scale(0)
	}
	dst := b.s.scales.take(b.kc / q.Group * 2 * panel)
	for g := range b.kc / q.Group {
		k := b.k0 + g*q.Group
		tile := p.tileAt(k, j)
		for l := range panel {
			dst[g*2*panel+l], dst[(g*2+1)*panel+l] = q.scale(tile, k%q.tile/q.Group, l)
		}
	}
	return unsafe.Pointer(&dst[0])
}

// unpack stores the unsigned codes of the block's part of a panel.
func (b *block) unpack(p *Packed, j int) unsafe.Pointer {
	q := p.quantized
	dst := unsafe.Pointer(&b.s.integer.codes.take(b.kc * panel / 4)[0])
	if b.level.unpack != nil {
		tile := unsafe.Pointer(&p.tileAt(b.k0, j)[0])
		t := &b.s.integer.unpacking
		*t = unpacking{
			dst: dst, codes: unsafe.Add(tile, q.code), fifths: unsafe.Add(tile, q.fifthAt), table: unsafe.Pointer(&q.unsigned),
			tiles: b.kc / q.tile, count: q.tile / records, step: q.code, fifthStep: q.bytes - q.tile*panel/8, bias: q.bias,
			kernel: min(q.Bits-4, 2),
		}
		b.level.unpack(t)
		return dst
	}
	codes := unsafe.Slice((*uint8)(dst), b.kc*panel)
	for k := range b.kc {
		tile := p.tileAt(b.k0+k, j)
		for l := range panel {
			codes[k/4*4*panel+4*l+k%4] = uint8(int(q.number(tile, (b.k0+k)%q.tile, l)) + q.bias)
		}
	}
	return dst
}

// run is the kernel in Go.
func (t *summing) run() {
	groups := 1 + t.half
	size := records / groups
	scales := unsafe.Slice((*[2][panel]float32)(t.scales), t.count*groups)
	codes := unsafe.Slice((*[panel][4]uint8)(t.codes), t.count*records/4)
	for i := range t.rows {
		row := unsafe.Slice((*record)(unsafe.Add(t.a, i*t.aRow)), t.count)
		c := floats(unsafe.Add(t.c, i*t.cRow), bits.Len(uint(t.lanes)))
		for l := range c {
			sum := float32(0)
			for g := range scales {
				r := &row[g/groups]
				n := r.start[g%groups]
				for k := range size {
					n += int32(codes[(g*size+k)/4][l][k%4]) * int32(r.q[g%groups*size+k])
				}
				sum = fma.Float32(scales[g][0][l]*r.a, float32(n), sum)
				if t.min == 1 {
					sum = fma.Float32(scales[g][1][l], r.sum[g%groups], sum)
				}
			}
			if t.mode == added {
				sum += c[l]
			}
			c[l] = sum
		}
	}
}
