package gguf

// The types of metadata values, with the format's numbers.
const (
	kindUint8 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindList
	kindUint64
	kindInt64
	kindFloat64
)

// value reads the value of a key: a single one, or a list of elements of one type.
func (r *reader) value(key string) any {
	kind := r.uint32()
	if kind == kindList {
		return r.list(key)
	}
	switch kind {
	case kindUint8:
		return r.uint8()
	case kindInt8:
		return r.int8()
	case kindUint16:
		return r.uint16()
	case kindInt16:
		return r.int16()
	case kindUint32:
		return r.uint32()
	case kindInt32:
		return r.int32()
	case kindFloat32:
		return r.float32()
	case kindBool:
		return r.bool()
	case kindString:
		return r.string()
	case kindUint64:
		return r.uint64()
	case kindInt64:
		return r.int64()
	case kindFloat64:
		return r.float64()
	}
	r.fail("metadata %q is of the unknown type %d", key, kind)
	return nil
}

// list reads a list. No known file has lists of lists; they are refused, as by ggml.
func (r *reader) list(key string) any {
	kind, n := r.uint32(), r.uint64()
	switch kind {
	case kindUint8:
		return repeat(r, n, 1, r.uint8)
	case kindInt8:
		return repeat(r, n, 1, r.int8)
	case kindUint16:
		return repeat(r, n, 2, r.uint16)
	case kindInt16:
		return repeat(r, n, 2, r.int16)
	case kindUint32:
		return repeat(r, n, 4, r.uint32)
	case kindInt32:
		return repeat(r, n, 4, r.int32)
	case kindFloat32:
		return repeat(r, n, 4, r.float32)
	case kindBool:
		return repeat(r, n, 1, r.bool)
	case kindString:
		return repeat(r, n, 8, r.string)
	case kindUint64:
		return repeat(r, n, 8, r.uint64)
	case kindInt64:
		return repeat(r, n, 8, r.int64)
	case kindFloat64:
		return repeat(r, n, 8, r.float64)
	}
	r.fail("metadata %q is a list of the unknown type %d", key, kind)
	return nil
}

// repeat reads n elements of at least that many bytes each. It refuses more than the rest of the file can hold.
func repeat[T any](r *reader, n uint64, bytes int, one func() T) []T {
	if n > uint64(len(r.rest)/bytes) {
		r.fail("a list claims %d elements and the file has %d more bytes; it is truncated", n, len(r.rest))
		return nil
	}
	out := make([]T, n)
	for i := range out {
		if out[i] = one(); r.err != nil {
			return nil
		}
	}
	return out
}
