package tokenizer

import (
	"encoding/binary"
	"errors"
	"math"
)

// fields calls yield for the fields of a message in protobuf's wire format: with number for varints and fixed-size
// values, with data for length-delimited ones. Nested messages are data: SentencePiece files have only a few kinds.
func fields(message []byte, yield func(field int, number uint64, data []byte) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return errBroken
		}
		message = message[n:]
		var number uint64
		var data []byte
		size := 0
		switch tag & 7 {
		case 0:
			if number, size = binary.Uvarint(message); size <= 0 {
				return errBroken
			}
		case 1:
			if size = 8; len(message) >= size {
				number = binary.LittleEndian.Uint64(message)
			}
		case 2:
			length, n := binary.Uvarint(message)
			if n <= 0 || length > uint64(len(message)-n) {
				return errBroken
			}
			size = n + int(length)
			data = message[n:size]
		case 5:
			if size = 4; len(message) >= size {
				number = uint64(binary.LittleEndian.Uint32(message))
			}
		default:
			return errBroken
		}
		if size > len(message) {
			return errBroken
		}
		if err := yield(int(tag>>3), number, data); err != nil {
			return err
		}
		message = message[size:]
	}
	return nil
}

var errBroken = errors.New("it is not a protobuf message, or it is truncated")
