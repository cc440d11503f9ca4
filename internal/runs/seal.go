package runs

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// A Parquet file ends with a footer, its length and a magic number:
//
//	"PAR1" | columns | footer | 4 bytes: length of the footer, little-endian | "PAR1"
//
// Offsets count from the beginning, so bytes between columns and footer are not read. That is where the seal is: the
// SHA-256 of everything else. It is verified before anything in a file is interpreted, and other readers of Parquet do
// not see it.
const tailBytes = 8

// seal inserts the checksum.
func seal(content []byte) ([]byte, error) {
	footer, err := footerStart(content)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	sealed := make([]byte, 0, len(content)+len(sum))
	sealed = append(sealed, content[:footer]...)
	sealed = append(sealed, sum[:]...)
	return append(sealed, content[footer:]...), nil
}

// unseal verifies the checksum and removes it.
func unseal(sealed []byte) ([]byte, error) {
	footer, err := footerStart(sealed)
	if err != nil {
		return nil, err
	}
	if footer < sha256.Size {
		return nil, errors.New("it has no checksum")
	}
	content := append(sealed[:footer-sha256.Size:footer-sha256.Size], sealed[footer:]...)
	if sha256.Sum256(content) != [sha256.Size]byte(sealed[footer-sha256.Size:footer]) {
		return nil, errors.New("its content does not match its checksum")
	}
	return content, nil
}

// footerStart returns where the footer begins.
func footerStart(content []byte) (int, error) {
	size, err := footerSize(content[max(0, len(content)-tailBytes):], int64(len(content)))
	return len(content) - tailBytes - size, err
}

// footerSize reads the length of the footer from the last bytes of a file of that size.
func footerSize(tail []byte, size int64) (int, error) {
	if len(tail) < tailBytes || string(tail[len(tail)-4:]) != "PAR1" {
		return 0, errors.New("it is not a complete Parquet file")
	}
	footer := binary.LittleEndian.Uint32(tail)
	if int64(footer) > size-tailBytes {
		return 0, errors.New("its footer is longer than the file")
	}
	return int(footer), nil
}
