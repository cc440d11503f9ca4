package vec

import "unsafe"

const (
	lineBytes  = 32      // that the kernel copies at once
	linesPiece = 1 << 18 // bytes of a call, which stays short
)

// Lines copies so many lines of memory to dst, one after another; a line begins step bytes after the one before. They do not overlap
// with dst. Short lines are what views of heads have, for each of which a copy of its own takes longer than the bytes.
func Lines(l Level, dst, src unsafe.Pointer, lines, bytes, step int) {
	if bytes > 0 && bytes%lineBytes == 0 && copiesLines(l) {
		most := max(1, linesPiece/bytes)
		for i := 0; i < lines; i += most {
			copyLines(unsafe.Add(dst, i*bytes), unsafe.Add(src, i*step), min(most, lines-i), bytes, step)
		}
		return
	}
	for i := range lines {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, i*bytes)), bytes), unsafe.Slice((*byte)(unsafe.Add(src, i*step)), bytes))
	}
}
