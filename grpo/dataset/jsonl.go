package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// WriteJSONL writes each record as JSON on a line of its own.
func WriteJSONL[T any](w io.Writer, records ...T) error {
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for i := range records {
		if err := encoder.Encode(records[i]); err != nil {
			return jsonlError(fmt.Sprintf("record %d", i), fmt.Errorf("%w: %w", art.ErrInvalid, err))
		}
	}
	if err := out.Flush(); err != nil {
		return jsonlError("write", fmt.Errorf("%w: %w", art.ErrStorage, err))
	}
	return nil
}

// jsonlError says where in JSONL something is wrong.
func jsonlError(where string, err error) error {
	const hint = "JSONL has one JSON value on each line, in UTF-8"
	return &art.Error{Op: "jsonl", Err: fmt.Errorf("%s: %w", where, err), Hint: hint}
}

// jsonlLine is one line that is not blank.
type jsonlLine struct {
	file string
	line int // from 1
	data []byte
	cut  bool // the file ends without a newline
}

func (l *jsonlLine) place() string { return fmt.Sprintf("%s:%d", l.file, l.line) }

func (l *jsonlLine) decode(v any) error {
	if !utf8.Valid(l.data) {
		return jsonlError(l.place(), fmt.Errorf("%w: is not UTF-8", art.ErrInvalid))
	}
	err := json.Unmarshal(l.data, v)
	if err == nil {
		return nil
	}
	if l.cut && !json.Valid(l.data) {
		return jsonlError(l.place(), fmt.Errorf("%w: the file ends in the middle of this line: %w", art.ErrInvalid, err))
	}
	return jsonlError(l.place(), fmt.Errorf("%w: %w", art.ErrInvalid, err))
}

// jsonlFile reads the lines of one file, plain or in gzip, which its first bytes tell.
type jsonlFile struct {
	path   string
	limit  int // bytes of a line
	file   *os.File
	unzip  *gzip.Reader // nil for a plain file
	in     *bufio.Reader
	line   int   // lines that were read
	offset int64 // bytes that were read, uncompressed
}

// openJSONL opens a file behind its first offset bytes, which hold so many lines.
func openJSONL(path string, limit, line int, offset int64) (*jsonlFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &art.Error{Op: "jsonl", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: "check the path"}
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		_ = file.Close()
		err := fmt.Errorf("%w: %s is a directory", art.ErrInvalid, path)
		return nil, &art.Error{Op: "jsonl", Err: err, Hint: "name a file in it"}
	}
	f := &jsonlFile{path: path, limit: limit, file: file, line: line, offset: offset}
	if err := f.start(); err != nil {
		_ = file.Close()
		return nil, jsonlError(path, err)
	}
	return f, nil
}

func (f *jsonlFile) start() error {
	f.in = bufio.NewReaderSize(f.file, 1<<16)
	magic, err := f.in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", art.ErrStorage, err)
	}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzip, err := gzip.NewReader(f.in)
		if err != nil {
			return gzipError(err)
		}
		f.unzip = unzip
		n, err := io.CopyN(io.Discard, unzip, f.offset)
		if errors.Is(err, io.EOF) && n < f.offset {
			return errShorter
		}
		if err != nil {
			return gzipError(err)
		}
		f.in = bufio.NewReaderSize(unzip, 1<<16)
		return nil
	}
	if f.offset == 0 { // a pipe cannot seek
		return nil
	}
	if end, err := f.file.Seek(0, io.SeekEnd); err == nil && end < f.offset {
		return errShorter
	}
	if _, err := f.file.Seek(f.offset, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", art.ErrStorage, err)
	}
	f.in.Reset(f.file)
	return nil
}

// errShorter is the problem of a position behind the end of a file.
var errShorter = fmt.Errorf("%w: the file is shorter than the position that the stream should start at", art.ErrInvalid)

// gzipError is the error of compressed data that is damaged or cut off.
func gzipError(err error) error { return fmt.Errorf("%w: gzip: %w", art.ErrInvalid, err) }

// next returns the next line that is not blank, [io.EOF] after the last.
func (f *jsonlFile) next() (jsonlLine, error) {
	for {
		data, err := f.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(data) == 0) {
			return jsonlLine{}, err
		}
		if f.line == 1 {
			data = bytes.TrimPrefix(data, []byte("\ufeff")) // a byte order mark
		}
		if content := bytes.TrimSpace(data); len(content) > 0 {
			return jsonlLine{file: f.path, line: f.line, data: content, cut: err != nil}, nil
		}
	}
}

// readLine reads up to the next newline. With [io.EOF] it returns what stands behind the last one. It holds no more
// of a line than the limit, and a buffer.
func (f *jsonlFile) readLine() ([]byte, error) {
	var data []byte
	for {
		part, err := f.in.ReadSlice('\n')
		f.offset += int64(len(part))
		data = append(data, part...)
		if len(data) > f.limit {
			return nil, jsonlError(fmt.Sprintf("%s:%d", f.path, f.line+1),
				fmt.Errorf("%w: the line is longer than %d bytes, see StreamOptions.MaxLine", art.ErrInvalid, f.limit))
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil || errors.Is(err, io.EOF) {
			if len(data) > 0 {
				f.line++
			}
			return data, err
		}
		failed := fmt.Errorf("%w: %w", art.ErrStorage, err)
		if f.unzip != nil {
			failed = gzipError(err)
		}
		return nil, jsonlError(fmt.Sprintf("%s:%d", f.path, f.line+1), failed)
	}
}
