package art

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"unicode/utf8"
)

// WriteJSONL writes each record as JSON on a line of its own.
func WriteJSONL[T any](w io.Writer, records ...T) error {
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for i := range records {
		if err := encoder.Encode(records[i]); err != nil {
			return jsonlError(fmt.Sprintf("record %d", i), fmt.Errorf("%w: %w", ErrInvalid, err))
		}
	}
	if err := out.Flush(); err != nil {
		return jsonlError("write", fmt.Errorf("%w: %w", ErrStorage, err))
	}
	return nil
}

// jsonlError says where in JSONL something is wrong.
func jsonlError(where string, err error) error {
	return &Error{"jsonl", fmt.Errorf("%s: %w", where, err), "JSONL has one JSON value on each line, in UTF-8"}
}

// jsonlLine is one line that is not blank.
type jsonlLine struct {
	file string
	line int // from 1
	data []byte
	cut  bool // the file ends without a newline
}

// place names the line in errors.
func (l *jsonlLine) place() string { return fmt.Sprintf("%s:%d", l.file, l.line) }

// decode decodes the line into v.
func (l *jsonlLine) decode(v any) error {
	if !utf8.Valid(l.data) {
		return jsonlError(l.place(), fmt.Errorf("%w: is not UTF-8", ErrInvalid))
	}
	err := json.Unmarshal(l.data, v)
	if err == nil {
		return nil
	}
	if l.cut && !json.Valid(l.data) {
		return jsonlError(l.place(), fmt.Errorf("%w: the file ends in the middle of this line: %w", ErrInvalid, err))
	}
	return jsonlError(l.place(), fmt.Errorf("%w: %w", ErrInvalid, err))
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
		return nil, &Error{"jsonl", fmt.Errorf("%w: %w", ErrInvalid, err), "check the path"}
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		_ = file.Close()
		return nil, &Error{"jsonl", fmt.Errorf("%w: %s is a directory", ErrInvalid, path), "name a file in it"}
	}
	f := &jsonlFile{path: path, limit: limit, file: file, line: line, offset: offset}
	if err := f.start(); err != nil {
		_ = file.Close()
		return nil, jsonlError(path, err)
	}
	return f, nil
}

// start begins to read at the offset.
func (f *jsonlFile) start() error {
	f.in = bufio.NewReaderSize(f.file, 1<<16)
	magic, err := f.in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return f.startGzip()
	}
	if f.offset == 0 { // a pipe cannot seek
		return nil
	}
	if end, err := f.file.Seek(0, io.SeekEnd); err == nil && end < f.offset {
		return errShorter
	}
	if _, err := f.file.Seek(f.offset, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	f.in.Reset(f.file)
	return nil
}

// errShorter is the problem of a position behind the end of a file.
var errShorter = fmt.Errorf("%w: the file is shorter than the position that the stream should start at", ErrInvalid)

// startGzip decompresses up to the offset.
func (f *jsonlFile) startGzip() error {
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

// gzipError is the error of compressed data that is damaged or cut off.
func gzipError(err error) error { return fmt.Errorf("%w: gzip: %w", ErrInvalid, err) }

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
				fmt.Errorf("%w: the line is longer than %d bytes, see StreamOptions.MaxLine", ErrInvalid, f.limit))
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
		return nil, f.readError(err)
	}
}

// readError says where reading failed.
func (f *jsonlFile) readError(err error) error {
	where := fmt.Sprintf("%s:%d", f.path, f.line+1)
	if f.unzip != nil {
		return jsonlError(where, gzipError(err))
	}
	return jsonlError(where, fmt.Errorf("%w: %w", ErrStorage, err))
}

// close closes the file. Nothing was written to it, so that there is no error to tell.
func (f *jsonlFile) close() { _ = f.file.Close() }

// Example is one line of a file of training data in OpenAI's fine-tuning format: {"messages": [...], "tools": [...]}.
//
// What was read is written back the same but for insignificant space: unknown fields of the line, of its messages and
// of its tools, and the order of keys; see [Message.UnmarshalJSON]. Unknown fields have no effect on training: that
// goes for OpenAI's weight of a message too.
type Example struct {
	History

	wire []wireField // what the fields above do not hold; nil for an example made in Go
}

// UnmarshalJSON reads a line. One without messages, or in which a field has the wrong type, is an [ErrInvalid] that
// names the field.
func (e *Example) UnmarshalJSON(data []byte) error { return wireError("read example", e.decode(data)) }

// decode is UnmarshalJSON with a plain error.
func (e *Example) decode(data []byte) error {
	fields, err := parseObject(data)
	if err != nil {
		return err
	}
	d := decoder{fields: fields}
	var read Example
	for i, raw := range d.array("messages") {
		var m Message
		d.err = firstError(d.err, within(fmt.Sprintf("messages[%d]", i), m.decode(raw)))
		read.Messages = append(read.Messages, m)
	}
	for i, raw := range d.array("tools") {
		var t Tool
		d.err = firstError(d.err, within(fmt.Sprintf("tools[%d]", i), t.decode(raw)))
		read.Tools = append(read.Tools, t)
	}
	if len(read.Messages) == 0 {
		d.fail("messages", "is missing or empty")
	}
	if d.err != nil {
		return d.err
	}
	known, err := read.known()
	if err != nil {
		return err
	}
	read.wire = keepWire(fields, known)
	*e = read
	return nil
}

// MarshalJSON writes a line; see [Example.UnmarshalJSON]. Samples are not part of it. An example without messages is an
// [ErrInvalid].
func (e Example) MarshalJSON() ([]byte, error) {
	if len(e.Messages) == 0 {
		return nil, wireError("write example", errors.New("messages is empty"))
	}
	known, err := e.known()
	if err != nil {
		return nil, err
	}
	return appendObject(nil, e.wire, known), nil
}

// known returns the wire form of the Go fields.
func (e *Example) known() ([]knownField, error) {
	messages, err := arrayOf(e.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := arrayOf(e.Tools)
	if err != nil {
		return nil, err
	}
	return []knownField{
		{key: "messages", raw: messages, says: func(json.RawMessage) bool { return false }},
		{key: "tools", raw: tools, zero: tools == nil, says: func(json.RawMessage) bool {
			return tools == nil // of tools only null and [] are kept
		}},
	}, nil
}

// arrayOf writes a list as JSON; nil when it is empty.
func arrayOf[T json.Marshaler](list []T) (json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	b := json.RawMessage{'['}
	for i := range list {
		element, err := list[i].MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, element...)
	}
	return append(b, ']'), nil
}

// Trajectory returns the example as a trajectory for [Model.TrainSFT]. It shares the messages and tools of e.
func (e *Example) Trajectory() *Trajectory {
	return &Trajectory{History: e.History, Metrics: map[string]float64{}, Metadata: map[string]any{}}
}

// BatchOptions say how scenarios are split into batches. The zero value and a nil *BatchOptions are the defaults.
type BatchOptions struct {
	// Size of a batch. The last one of an epoch may be smaller. Default 1, also for less.
	Size int
	// Epochs is how often all scenarios are yielded. Default 1; negative is forever.
	Epochs int
	// Seed of the order.
	Seed uint64
	// Start is the first step to yield: a resumed run skips the batches before it. Less than 0 is 0.
	Start int
	// InOrder keeps the order of the scenarios. By default each epoch is shuffled, depending on Seed and the epoch only.
	InOrder bool
}

// Batch is the scenarios of one training step.
type Batch[S any] struct {
	Step      int // since the beginning of the first epoch
	Epoch     int
	EpochStep int // since the beginning of the epoch
	Items     []S
}

// Batches splits scenarios into batches. Started at step k it yields exactly what a sequence from the beginning yields
// after its first k batches:
//
//	for batch := range art.Batches(scenarios, &art.BatchOptions{Size: 8, Epochs: 3, Start: model.Step()}) {
//
// Without scenarios there are no batches. opts may be nil.
func Batches[S any](scenarios []S, opts *BatchOptions) iter.Seq[Batch[S]] {
	o := opts.withDefaults()
	return func(yield func(Batch[S]) bool) {
		perEpoch := len(scenarios) / o.Size
		if len(scenarios)%o.Size > 0 {
			perEpoch++
		}
		if perEpoch == 0 {
			return
		}
		for epoch := o.Start / perEpoch; o.Epochs < 0 || epoch < o.Epochs; epoch++ {
			b := Batch[S]{Step: epoch * perEpoch, Epoch: epoch}
			for indices := range slices.Chunk(o.order(epoch, len(scenarios)), o.Size) {
				b.Items = pick(scenarios, indices)
				if b.Step >= o.Start && !yield(b) {
					return
				}
				b.Step++
				b.EpochStep++
			}
		}
	}
}

// pick returns the scenarios at the given indices.
func pick[S any](scenarios []S, indices []int) []S {
	out := make([]S, len(indices))
	for i, at := range indices {
		out[i] = scenarios[at]
	}
	return out
}

// withDefaults returns a copy with defaults filled in.
func (o *BatchOptions) withDefaults() BatchOptions {
	var d BatchOptions
	if o != nil {
		d = *o
	}
	d.Size, d.Start = max(d.Size, 1), max(d.Start, 0)
	if d.Epochs == 0 {
		d.Epochs = 1
	}
	return d
}

// order returns the indices of n scenarios in the order of an epoch.
func (o *BatchOptions) order(epoch, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if !o.InOrder {
		swap := func(i, j int) { order[i], order[j] = order[j], order[i] }
		newRand(mix(seedShuffle, o.Seed, uint64(epoch))).Shuffle(n, swap)
	}
	return order
}
