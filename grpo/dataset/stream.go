// Package dataset reads training data: streams of JSONL that are shuffled, dealt out in batches, and resumed.
package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/problems"
)

// StreamOptions say how JSONL files are read. The zero value and a nil *StreamOptions are the defaults: once, in order.
type StreamOptions struct {
	// Shuffle is how many lines are held in memory to be shuffled, fewer when they take more than 256 MiB: the buffer is
	// filled, dealt out in random order, and filled again. The files come in random order too. Each epoch has another
	// order, in which the buffer begins at other lines. Default 0, and 1: in order.
	Shuffle int
	// Seed of the order.
	Seed uint64
	// Epochs is how often all files are read. Default 1; negative is forever.
	Epochs int
	// MaxLine is the number of bytes that a line may have, its newline included. A longer one is an [art.ErrInvalid]; no
	// more than this much of it is read. Default 16 MiB.
	MaxLine int
	// From is the position to start at: that of a [StreamRecord] or a [StreamBatch] of a stream with the same files,
	// Shuffle and Seed. What follows is exactly what followed it there. nil is the beginning.
	From *StreamPosition
	// Skip is how many records, of [StreamBatches] batches, are skipped after From. They are read and not decoded.
	Skip int
}

// StreamPosition is a place between two records of a stream. It is stored as JSON, for example with
// [art.Model.SaveState].
type StreamPosition struct {
	// Stream tells streams apart: it depends on the number of files, Shuffle and Seed.
	Stream string `json:"stream"`
	Epoch  int    `json:"epoch"`
	// Step and EpochStep count the batches of [StreamBatches] before this position, in all and in the epoch.
	Step      int `json:"step,omitempty"`
	EpochStep int `json:"epoch_step,omitempty"`
	// File, Line and Offset are where the buffer was filled from: the index of the file in the order of the epoch, and the
	// lines and uncompressed bytes of it that come before.
	File   int   `json:"file"`
	Line   int   `json:"line"`
	Offset int64 `json:"offset"`
	// Buffer counts the buffers of the epoch before this one, and Dealt the records of this one that have been dealt out.
	Buffer int `json:"buffer"`
	Dealt  int `json:"dealt"`
}

// StreamRecord is one line of a stream.
type StreamRecord[T any] struct {
	Value T
	File  string
	Line  int // from 1
	Epoch int
	// Next is the position behind this record.
	Next StreamPosition
}

// Stream reads JSONL files, each line as a T: [art.Example], or the type of a scenario. Files may be compressed by
// gzip. Blank lines are skipped. What is held in memory is one line, or the buffer of [StreamOptions].Shuffle.
//
//	for record, err := range Stream[art.Example]([]string{"train.jsonl.gz"}, &StreamOptions{Shuffle: 10_000}) {
//
// An error ends the stream: an [art.ErrInvalid] that names file and line for one that is not JSON, not a T, too long,
// not UTF-8, or cut off by the end of the file; [art.ErrInvalid] for options and files that cannot be used;
// [art.ErrStorage] when reading fails. A value that is a bare number and was cut off after a digit goes unnoticed. opts
// may be nil.
func Stream[T any](files []string, opts *StreamOptions) iter.Seq2[StreamRecord[T], error] {
	return func(yield func(StreamRecord[T], error) bool) {
		s, err := newStream(files, opts)
		if err == nil {
			defer s.close()
			err = s.skip(s.opts.Skip)
		}
		for err == nil {
			var line dealtLine
			var r StreamRecord[T]
			if line, err = s.next(); err == nil {
				r, err = recordOf[T](line)
			}
			if err == nil && !yield(r, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(StreamRecord[T]{}, err)
		}
	}
}

func recordOf[T any](line dealtLine) (StreamRecord[T], error) {
	r := StreamRecord[T]{File: line.file, Line: line.line, Epoch: line.epoch, Next: line.after}
	err := line.decode(&r.Value)
	return r, err
}

// StreamBatch is the records of one training step.
type StreamBatch[S any] struct {
	art.Batch[S]
	// Next is the position behind the batch.
	Next StreamPosition
}

// StreamBatches deals a [Stream] out in batches of size records, in the manner of [art.Batches]: the last one of an
// epoch may be smaller. A run that is resumed gives the Next of its last batch as [StreamOptions].From, or skips as
// many batches as it has trained on:
//
//	for batch, err := range StreamBatches[art.Scenario](files, 8, &StreamOptions{Epochs: 3, Skip: model.Step()}) {
//
// A size less than 1 is 1. opts may be nil. Errors are those of [Stream]; a batch that has one is not yielded.
func StreamBatches[S any](files []string, size int, opts *StreamOptions) iter.Seq2[StreamBatch[S], error] {
	return func(yield func(StreamBatch[S], error) bool) {
		s, err := newStream(files, opts)
		if err != nil {
			yield(StreamBatch[S]{}, err)
			return
		}
		defer s.close()
		b := batcher{stream: s, size: max(size, 1)}
		for skip := s.opts.Skip; ; skip-- {
			lines, err := b.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && skip > 0 {
				continue
			}
			batch, err := batchOf[S](lines, err)
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// batchOf decodes the lines of a batch, unless there is an error already.
func batchOf[S any](lines []dealtLine, err error) (StreamBatch[S], error) {
	var b StreamBatch[S]
	if err != nil {
		return b, err
	}
	for _, line := range lines {
		r, err := recordOf[S](line)
		if err != nil {
			return StreamBatch[S]{}, err
		}
		b.Items = append(b.Items, r.Value)
	}
	b.Next = lines[len(lines)-1].after
	b.Step, b.EpochStep, b.Epoch = b.Next.Step-1, b.Next.EpochStep-1, b.Next.Epoch
	return b, nil
}

type batcher struct {
	stream *lineStream
	size   int
	ahead  *dealtLine // belongs to the next batch
}

// next returns the lines of the next batch, [io.EOF] after the last.
func (b *batcher) next() ([]dealtLine, error) {
	var lines []dealtLine
	for len(lines) < b.size {
		line, err := b.line()
		if errors.Is(err, io.EOF) && len(lines) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(lines) > 0 && line.epoch != lines[0].epoch {
			b.ahead = &line
			break
		}
		lines = append(lines, line)
	}
	end, s := &lines[len(lines)-1].after, b.stream
	if end.Epoch != s.batchEpoch {
		s.batchEpoch, s.epochStep = end.Epoch, 0
	}
	s.step++
	s.epochStep++
	end.Step, end.EpochStep = s.step, s.epochStep
	return lines, nil
}

// line returns the line that was read ahead, or the next one of the stream.
func (b *batcher) line() (dealtLine, error) {
	if b.ahead == nil {
		return b.stream.next()
	}
	line := *b.ahead
	b.ahead = nil
	return line, nil
}

// maxBuffered is how many bytes the shuffle buffer takes in before it is dealt out, whatever the number of lines.
const maxBuffered = 256 << 20

type dealtLine struct {
	jsonlLine
	epoch int
	after StreamPosition
}

// lineStream reads the lines of files and deals them out, buffer by buffer.
type lineStream struct {
	files []string
	opts  StreamOptions
	at    StreamPosition // where the buffer began, but for Dealt: what has been dealt out
	order []int          // of the files, in this epoch
	file  *jsonlFile     // that is being read; nil between files

	buffer  []jsonlLine    // in the order in which it is dealt out
	refill  StreamPosition // where the next buffer begins
	fresh   bool           // the epoch was begun at its beginning, and has had no line yet
	limit   int64          // bytes that fill the buffer
	started bool

	step, epochStep, batchEpoch int // of batches
}

// newStream checks the options. Nothing is opened yet.
func newStream(files []string, opts *StreamOptions) (*lineStream, error) {
	o := *cmp.Or(opts, &StreamOptions{})
	o.Shuffle, o.Epochs, o.MaxLine = max(o.Shuffle, 1), cmp.Or(o.Epochs, 1), cmp.Or(o.MaxLine, 16<<20)
	// The same for options under which positions mean the same.
	id := fmt.Sprintf("%016x", mix(seedShuffle, o.Seed, uint64(o.Shuffle), uint64(len(files)), 0))
	var p problems.List
	p.Check(len(files) > 0, "no files")
	p.Check(o.MaxLine > 0, "MaxLine is %d, want > 0", o.MaxLine)
	p.Check(o.Skip >= 0, "Skip is %d, want >= 0", o.Skip)
	if at := o.From; at != nil {
		p.Check(at.Stream == id, "From is a position of a stream with other files, Shuffle or Seed")
		lowest := min(at.Epoch, at.Step, at.EpochStep, at.File, at.Line, at.Buffer, at.Dealt)
		p.Check(lowest >= 0 && at.Offset >= 0 && at.File <= len(files), "From is no position that a stream gave: %+v", *at)
	}
	if err := p.Err("stream", "correct the files and the StreamOptions"); err != nil {
		return nil, err
	}
	s := &lineStream{files: files, opts: o, limit: maxBuffered, fresh: o.From == nil}
	s.at.Stream = id
	if o.From != nil {
		s.at = *o.From
		s.step, s.epochStep, s.batchEpoch = s.at.Step, s.at.EpochStep, s.at.Epoch
	}
	s.order = s.fileOrder(s.at.Epoch)
	return s, nil
}

func (s *lineStream) fileOrder(epoch int) []int {
	order := make([]int, len(s.files))
	for i := range order {
		order[i] = i
	}
	if s.opts.Shuffle != 1 {
		swap := func(i, j int) { order[i], order[j] = order[j], order[i] }
		newRand(mix(seedShuffle, s.opts.Seed, uint64(epoch))).Shuffle(len(order), swap)
	}
	return order
}

func (s *lineStream) skip(n int) error {
	for range n {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// next deals out a line, [io.EOF] after the last one.
func (s *lineStream) next() (dealtLine, error) {
	for s.at.Dealt >= len(s.buffer) {
		if err := s.advance(); err != nil {
			return dealtLine{}, err
		}
	}
	line := dealtLine{jsonlLine: s.buffer[s.at.Dealt], epoch: s.at.Epoch}
	s.buffer[s.at.Dealt].data = nil
	s.at.Dealt++
	line.after = s.at
	if s.at.Dealt == len(s.buffer) {
		line.after = s.refill
	}
	return line, nil
}

// advance fills the buffer: at first from where the stream starts, later from where the last one ended.
func (s *lineStream) advance() error {
	if s.opts.Epochs >= 0 && s.at.Epoch >= s.opts.Epochs {
		return io.EOF
	}
	if s.started {
		s.at = s.refill
	}
	s.started = true
	s.buffer = s.buffer[:0]
	want, size, end := s.opts.Shuffle, int64(0), s.at
	if s.at.Buffer == 0 { // a random number, so that each epoch shuffles other lines together
		want = 1 + newRand(mix(seedShuffle, s.opts.Seed, uint64(s.at.Epoch), 2, 2)).IntN(want)
	}
	for len(s.buffer) < want && size < s.limit {
		line, err := s.read(&end)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		s.buffer = append(s.buffer, line)
		size += int64(len(line.data))
	}
	end.Buffer, end.Dealt = s.at.Buffer+1, 0
	s.refill = end
	if s.opts.Shuffle > 1 {
		r := newRand(mix(seedShuffle, s.opts.Seed, uint64(s.at.Epoch), uint64(s.at.Buffer), 1))
		r.Shuffle(len(s.buffer), func(i, j int) { s.buffer[i], s.buffer[j] = s.buffer[j], s.buffer[i] })
	}
	if s.at.Dealt > len(s.buffer) {
		return jsonlError(s.files[0], errShorter)
	}
	if len(s.buffer) > 0 {
		s.fresh = false
		return nil
	}
	if s.fresh { // no file has a line: there would be epochs of nothing for ever
		return io.EOF
	}
	epoch := s.at.Epoch + 1
	s.close()
	s.refill = StreamPosition{Stream: s.at.Stream, Epoch: epoch}
	s.at.Epoch, s.fresh, s.order = epoch, true, s.fileOrder(epoch)
	return nil
}

// read reads the line at a position, and moves the position behind it. [io.EOF] is the end of the epoch.
func (s *lineStream) read(at *StreamPosition) (jsonlLine, error) {
	for at.File < len(s.files) {
		if s.file == nil {
			file, err := openJSONL(s.files[s.order[at.File]], s.opts.MaxLine, at.Line, at.Offset)
			if err != nil {
				return jsonlLine{}, err
			}
			s.file = file
		}
		line, err := s.file.next()
		if !errors.Is(err, io.EOF) {
			at.Line, at.Offset = s.file.line, s.file.offset
			return line, err
		}
		s.close()
		at.File, at.Line, at.Offset = at.File+1, 0, 0
	}
	return jsonlLine{}, io.EOF
}

func (s *lineStream) close() {
	if s.file != nil {
		_ = s.file.file.Close() // nothing was written to it
		s.file = nil
	}
}

// Random numbers are those that package art had when streams were part of it: stored positions go on where they were.
// TestStream_OrderOfBatches holds the order of files against that of [art.Batches].

// seedShuffle is the purpose of the seeds of this package, among those of package art.
const seedShuffle uint64 = 7

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(mix(seed, 1), mix(seed, 2))) }

// mix hashes a sequence of numbers. Sequences that differ in an element, in order or in length give unrelated results.
func mix(path ...uint64) uint64 {
	h := uint64(len(path))
	for _, x := range path {
		h = scramble(h ^ scramble(x))
	}
	return h
}

// scramble is the output function of SplitMix64 (Steele, Lea, Flood 2014) after one step of its counter.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
