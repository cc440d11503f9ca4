package gemm

import "unsafe"

// inParts reports whether a matrix of codes is made numbers part by part, in L1, where all rows of A are multiplied by
// them: there are too many rows for kernels that multiply by codes, and too few to go through memory on the way.
func (b *block) inParts() bool {
	return b.b.packed.IsQuantized() && !b.b.transposed && !b.rowsOuter
}

// multiplyParts goes through the contracted axis of one panel after the other. Sums are computed in memory of its own,
// whole panels: those of a fixed block, whose parts go on from them, and those of the blocks before.
func (b *block) multiplyParts() {
	p, left := b.b.packed, b.left()
	numbers := b.s.b.take(codedPart * panel)
	size := b.mb * panel
	space := b.s.sums.take(2 * size)
	for j := 0; j < b.nb; j += panel {
		width := min(panel, b.nb-j)
		total, mode := space[:size], b.mode
		if mode != fresh {
			copyRows(Out{total, panel}, Out{b.out.Data[j:], b.out.Row}, b.mb, width)
		}
		for k := 0; k < b.kc; k += Block {
			sums, end := total, min(k+Block, b.kc)
			if mode == added {
				sums = space[size:]
			}
			for at := k; at < end; at += codedPart {
				n := min(codedPart, end-at)
				b.dequantize(numbers[:n*panel], p, b.k0+at, b.j0+j)
				part := fresh
				if at > k || mode == resume {
					part = resume
				}
				b.multiplyPart(left, numbers[:n*panel], at, sums, part)
			}
			if mode == added {
				b.addRow(total, sums, panel, b.mb)
			}
			mode = added
		}
		copyRows(Out{b.out.Data[j:], b.out.Row}, Out{total, panel}, b.mb, width)
	}
}

// multiplyPart multiplies all rows of A, from a column of the block on, by the numbers of a part.
func (b *block) multiplyPart(left leftSide, numbers []float32, at int, sums []float32, m mode) {
	for _, run := range splitRows(b.mb, b.level.rows) {
		if run.count == 0 {
			continue
		}
		b.s.tile = tile{
			rows: run.height, count: run.count, k: len(numbers) / panel, mode: m,
			b: unsafe.Pointer(&numbers[0]), bRow: 4 * panel,
			c: unsafe.Pointer(&sums[run.row*panel]), cRow: 4 * panel, cStep: 4 * panel * run.height,
		}
		t := &b.s.tile
		left.setTile(t, run, b.kc)
		t.a = unsafe.Add(t.a, at*t.aCol)
		b.level.tiles(b.s, panel, false)
	}
}

// copyRows copies rows of so many columns.
func copyRows(dst, src Out, rows, columns int) {
	for i := range rows {
		copy(dst.Data[i*dst.Row:][:columns], src.Data[i*src.Row:])
	}
}
