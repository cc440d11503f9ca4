package art

import (
	"errors"
	"fmt"
	"io"
	"iter"
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
	// MaxLine is the number of bytes that a line may have, its newline included. A longer one is an [ErrInvalid]; no more
	// than this much of it is read. Default 16 MiB.
	MaxLine int
	// From is the position to start at: that of a [StreamRecord] or a [StreamBatch] of a stream with the same files,
	// Shuffle and Seed. What follows is exactly what followed it there. nil is the beginning.
	From *StreamPosition
	// Skip is how many records, of [StreamBatches] batches, are skipped after From. They are read and not decoded.
	Skip int
}

// StreamPosition is a place between two records of a stream. It is stored as JSON, for example with [Model.SaveState].
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

// Stream reads JSONL files, each line as a T: [Example], or the type of a scenario. Files may be compressed by gzip.
// Blank lines are skipped. What is held in memory is one line, or the buffer of [StreamOptions].Shuffle.
//
//	for record, err := range art.Stream[art.Example]([]string{"train.jsonl.gz"}, &art.StreamOptions{Shuffle: 10_000}) {
//
// An error ends the stream: an [ErrInvalid] that names file and line for one that is not JSON, not a T, too long, not
// UTF-8, or cut off by the end of the file; [ErrInvalid] for options and files that cannot be used; [ErrStorage] when
// reading fails. A value that is a bare number and was cut off after a digit goes unnoticed. opts may be nil.
func Stream[T any](files []string, opts *StreamOptions) iter.Seq2[StreamRecord[T], error] {
	return func(yield func(StreamRecord[T], error) bool) {
		s, err := newStream(files, opts)
		if err == nil {
			defer s.close()
			err = s.skip(s.opts.Skip)
		}
		for err == nil {
			var line dealtLine
			if line, err = s.next(); err != nil {
				break
			}
			var r StreamRecord[T]
			if r, err = recordOf[T](line); err == nil && !yield(r, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(StreamRecord[T]{}, err)
		}
	}
}

// recordOf decodes a line.
func recordOf[T any](line dealtLine) (StreamRecord[T], error) {
	r := StreamRecord[T]{File: line.file, Line: line.line, Epoch: line.epoch, Next: line.after}
	err := line.decode(&r.Value)
	return r, err
}

// StreamBatch is the records of one training step.
type StreamBatch[S any] struct {
	Batch[S]
	// Next is the position behind the batch.
	Next StreamPosition
}

// StreamBatches deals a [Stream] out in batches of size records, in the manner of [Batches]: the last one of an epoch
// may be smaller. A run that is resumed gives the Next of its last batch as [StreamOptions].From, or skips as
// many batches as it has trained on:
//
//	for batch, err := range art.StreamBatches[Scenario](files, 8, &art.StreamOptions{Epochs: 3, Skip: model.Step()}) {
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

// batcher cuts a stream into batches.
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
	b.count(&lines[len(lines)-1].after)
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

// count counts the batch that ends at a position.
func (b *batcher) count(end *StreamPosition) {
	s := b.stream
	if end.Epoch != s.batchEpoch {
		s.batchEpoch, s.epochStep = end.Epoch, 0
	}
	s.step++
	s.epochStep++
	end.Step, end.EpochStep = s.step, s.epochStep
}

// withDefaults returns a copy with defaults filled in.
func (o *StreamOptions) withDefaults() StreamOptions {
	var d StreamOptions
	if o != nil {
		d = *o
	}
	d.Shuffle = max(d.Shuffle, 1)
	if d.Epochs == 0 {
		d.Epochs = 1
	}
	if d.MaxLine == 0 {
		d.MaxLine = 16 << 20
	}
	return d
}

// validate lists every problem.
func (o *StreamOptions) validate(files []string) error {
	var p problems
	p.check(len(files) > 0, "no files")
	p.check(o.MaxLine > 0, "MaxLine is %d, want > 0", o.MaxLine)
	p.check(o.Skip >= 0, "Skip is %d, want >= 0", o.Skip)
	if o.From != nil {
		o.From.validate(&p, o.id(len(files)), len(files))
	}
	return p.err("stream", "correct the files and the StreamOptions")
}

// validate adds what is wrong with a position of the stream of that id.
func (at *StreamPosition) validate(p *problems, id string, files int) {
	p.check(at.Stream == id, "From is a position of a stream with other files, Shuffle or Seed")
	lowest := min(at.Epoch, at.Step, at.EpochStep, at.File, at.Line, at.Buffer, at.Dealt)
	p.check(lowest >= 0 && at.Offset >= 0 && at.File <= files, "From is no position that a stream gave: %+v", *at)
}

// id is the same for options under which positions mean the same.
func (o *StreamOptions) id(files int) string {
	return fmt.Sprintf("%016x", mix(seedShuffle, o.Seed, uint64(o.Shuffle), uint64(files), 0))
}
