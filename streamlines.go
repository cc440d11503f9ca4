package art

import (
	"errors"
	"io"
)

// maxBuffered is how many bytes the shuffle buffer takes in before it is dealt out, whatever the number of lines.
const maxBuffered = 256 << 20

// dealtLine is a line in the order of the stream.
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
	o := opts.withDefaults()
	if err := o.validate(files); err != nil {
		return nil, err
	}
	s := &lineStream{files: files, opts: o, limit: maxBuffered, fresh: o.From == nil}
	s.at.Stream = o.id(len(files))
	if o.From != nil {
		s.at = *o.From
		s.step, s.epochStep, s.batchEpoch = s.at.Step, s.at.EpochStep, s.at.Epoch
	}
	s.order = s.fileOrder(s.at.Epoch)
	return s, nil
}

// fileOrder returns the order of the files in an epoch.
func (s *lineStream) fileOrder(epoch int) []int {
	o := BatchOptions{Seed: s.opts.Seed, InOrder: s.opts.Shuffle == 1}
	return o.order(epoch, len(s.files))
}

// skip skips n lines.
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
	if err := s.fill(); err != nil {
		return err
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
	s.beginEpoch(s.at.Epoch + 1)
	return nil
}

// beginEpoch goes to the beginning of an epoch.
func (s *lineStream) beginEpoch(epoch int) {
	s.close()
	s.refill = StreamPosition{Stream: s.at.Stream, Epoch: epoch}
	s.at.Epoch, s.fresh, s.order = epoch, true, s.fileOrder(epoch)
}

// fill reads the lines of the buffer that begins at s.at, and shuffles them.
func (s *lineStream) fill() error {
	s.buffer = s.buffer[:0]
	want, size := s.bufferSize(), int64(0)
	end := s.at
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
	return nil
}

// bufferSize is how many lines the buffer at s.at takes. The first one of an epoch takes a random number, so that each
// epoch shuffles other lines together.
func (s *lineStream) bufferSize() int {
	if s.at.Buffer > 0 {
		return s.opts.Shuffle
	}
	return 1 + newRand(mix(seedShuffle, s.opts.Seed, uint64(s.at.Epoch), 2, 2)).IntN(s.opts.Shuffle)
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

// close closes the file that is being read.
func (s *lineStream) close() {
	if s.file != nil {
		s.file.close()
		s.file = nil
	}
}
