package vec

import "unsafe"

const (
	lineBytes  = 32      // that the kernel copies at once
	linesPiece = 1 << 18 // bytes of a call, which stays short
)

// Plane is where lines of memory lie: so many of some bytes, which begin step bytes after one another. Planes of them
// begin next bytes after one another.
type Plane struct{ Next, Lines, Step, Bytes int }

// Lines copies the lines of so many planes to dst, one after another. They do not overlap with dst. Short lines are
// what views of heads have, for each of which a copy of its own takes longer than the bytes.
func Lines(l Level, dst, src unsafe.Pointer, planes int, p *Plane) {
	if planes <= 0 || p.Lines <= 0 || p.Bytes <= 0 {
		return
	}
	if p.Bytes%lineBytes != 0 || !copiesLines(l) {
		p.copy(dst, src, planes)
		return
	}
	size := p.Lines * p.Bytes
	if size*planes <= linesPiece {
		copyLines(dst, src, planes, p)
		return
	}
	part := *p
	part.Lines = max(1, linesPiece/p.Bytes)
	for i := range planes {
		to, from := unsafe.Add(dst, i*size), unsafe.Add(src, i*p.Next)
		for left := p.Lines; left > 0; left -= part.Lines {
			part.Lines = min(part.Lines, left)
			copyLines(to, from, 1, &part)
			to, from = unsafe.Add(to, part.Lines*p.Bytes), unsafe.Add(from, part.Lines*p.Step)
		}
	}
}

// copy copies line by line.
func (p *Plane) copy(dst, src unsafe.Pointer, planes int) {
	for i := range planes {
		for j := range p.Lines {
			from := unsafe.Add(src, i*p.Next+j*p.Step)
			copy(unsafe.Slice((*byte)(dst), p.Bytes), unsafe.Slice((*byte)(from), p.Bytes))
			dst = unsafe.Add(dst, p.Bytes)
		}
	}
}
