package gemm

import "unsafe"

// A row times a matrix that is read in place goes along its rows. The processor prefetches what comes next of each row
// that it reads, if there are few and their runs are long.

// streams reports whether the matmul is one row times a matrix whose rows are read in parallel.
func (g *call) streams() bool {
	return g.m == 1 && g.n >= streamColumns && g.level.stream != nil && g.b.packed == nil && g.b.view.Col == 1
}

// stream computes all columns but for the last few, and returns how many they are.
func (b *block) stream() int {
	columns := b.nb / streamColumns * streamColumns
	if columns == 0 {
		return 0
	}
	if b.mode == fresh {
		clear(b.out.Data[:columns])
	}
	most := streamRows
	if 4*b.b.view.Row%pageBytes == 0 {
		most = pageStreams
	}
	for _, run := range splitRows(b.kc, most) {
		// Groups of rows of B, in calls that stay short.
		most := max(1, streamBytes/(4*columns*max(1, run.height)))
		for done := 0; done < run.count; done += most {
			b.setTile(b.inPlaceLeft(0), tileRun{0, 1, columns / streamColumns}, 0, b.inPlace(0))
			t, at := &b.s.tile, run.row+done*run.height
			t.a, t.b = unsafe.Add(t.a, at*t.aCol), unsafe.Add(t.b, at*t.bRow)
			t.rows, t.k, t.bStep = run.height, min(most, run.count-done), run.height*t.bRow
			b.level.stream(t)
		}
	}
	return columns
}
