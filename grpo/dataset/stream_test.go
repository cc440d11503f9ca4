package dataset_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
	"github.com/goart-dev/art/internal/dev/arttest"
)

var wantEqual, wantErr = arttest.WantEqual, arttest.WantErr

// item is a scenario.
type item struct {
	ID int `json:"id"`
}

// writeFile writes a file to a folder of its own.
func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gzipped compresses data.
func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// itemFiles writes the items 0 to n-1 to files, some with gzip, some with blank lines, a byte order mark or Windows'
// line ends, some without a newline at the end.
func itemFiles(t *testing.T, r *rand.Rand, n, files int) []string {
	t.Helper()
	texts := make([]bytes.Buffer, files)
	for i := range n {
		b := &texts[r.IntN(files)]
		if b.Len() == 0 && r.IntN(3) == 0 {
			b.WriteString("\ufeff")
		}
		end := []string{"\n", "\r\n", "\n \n\n"}[r.IntN(3)]
		fmt.Fprintf(b, `{"id":%d,"pad":%q}%s`, i, strings.Repeat("x", r.IntN(50)), end)
	}
	var paths []string
	for i := range texts {
		data, name := texts[i].Bytes(), fmt.Sprintf("%d.jsonl", i)
		if r.IntN(3) == 0 {
			data = bytes.TrimRight(data, " \r\n")
		}
		if r.IntN(2) == 0 {
			data = gzipped(data)
		}
		paths = append(paths, writeFile(t, name, data))
	}
	return paths
}

// stream returns all records.
func stream[T any](t *testing.T, files []string, opts *dataset.StreamOptions) []dataset.StreamRecord[T] {
	t.Helper()
	var out []dataset.StreamRecord[T]
	for r, err := range dataset.Stream[T](files, opts) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// batches returns all batches.
func batches(t *testing.T, files []string, size int, opts *dataset.StreamOptions) []dataset.StreamBatch[item] {
	t.Helper()
	var out []dataset.StreamBatch[item]
	for b, err := range dataset.StreamBatches[item](files, size, opts) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// stored sends a position through JSON.
func stored(t *testing.T, p dataset.StreamPosition) *dataset.StreamPosition {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var out dataset.StreamPosition
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// A run that has made one step continues with the second batch.
func ExampleStreamBatches() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "scenarios.jsonl")
	if err := os.WriteFile(file, []byte("{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	opts := &dataset.StreamOptions{Epochs: 2, Skip: 1} // Skip: model.Step()
	for batch, err := range dataset.StreamBatches[item]([]string{file}, 2, opts) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Step, batch.Epoch, batch.Items)
	}
	// Output:
	// 1 0 [{3}]
	// 2 1 [{1} {2}]
	// 3 1 [{3}]
}

func TestStream_InOrder(t *testing.T) {
	one := writeFile(t, "one.jsonl", []byte("{\"id\":1}\n\n{\"id\":2}\r\n"))
	two := writeFile(t, "two", gzipped([]byte("\ufeff{\"id\":3}\n{\"id\":4}")))
	var got []string
	for _, r := range stream[item](t, []string{one, two}, &dataset.StreamOptions{Epochs: 2}) {
		got = append(got, fmt.Sprintf("%d %s:%d %d", r.Value.ID, filepath.Base(r.File), r.Line, r.Epoch))
	}
	wantEqual(t, "records", got, []string{
		"1 one.jsonl:1 0", "2 one.jsonl:3 0", "3 two:1 0", "4 two:2 0",
		"1 one.jsonl:1 1", "2 one.jsonl:3 1", "3 two:1 1", "4 two:2 1",
	})
}

// Every epoch is a permutation of the records, and at every position, stored as JSON, the rest is the rest.
func TestStream_ResumeProperty(t *testing.T) {
	const seed = 5
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		n := r.IntN(25)
		files := itemFiles(t, r, n, 1+r.IntN(3))
		opts := dataset.StreamOptions{Shuffle: r.IntN(9), Seed: r.Uint64(), Epochs: 1 + r.IntN(3)}
		whole := stream[item](t, files, &opts)
		wantPermutations(t, whole, n, opts.Epochs)
		for i := range whole {
			opts.From = stored(t, whole[i].Next)
			if got := stream[item](t, files, &opts); len(got)+len(whole[i+1:]) > 0 {
				wantEqual(t, "rest", got, whole[i+1:])
			}
		}
		opts.From, opts.Skip = nil, r.IntN(n+2)
		if got := stream[item](t, files, &opts); len(got) > 0 {
			wantEqual(t, "after Skip", got, whole[opts.Skip:])
		}
	}
}

// wantPermutations checks that each epoch has the items 0 to n-1.
func wantPermutations(t *testing.T, records []dataset.StreamRecord[item], n, epochs int) {
	t.Helper()
	for epoch := range epochs {
		var ids []int
		for _, r := range records {
			if r.Epoch == epoch {
				ids = append(ids, r.Value.ID)
			}
		}
		if slices.Sort(ids); !slices.Equal(ids, numbers(n)) {
			t.Fatalf("epoch %d has the items %v, want 0 to %d", epoch, ids, n-1)
		}
	}
}

func TestStream_Shuffle(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "%d\n", i)
	}
	file := writeFile(t, "n.jsonl", []byte(text.String()))
	order := func(seed uint64) (first, second []int) {
		for _, r := range stream[int](t, []string{file}, &dataset.StreamOptions{Shuffle: 20, Seed: seed, Epochs: 2}) {
			if r.Epoch == 0 {
				first = append(first, r.Value)
			} else {
				second = append(second, r.Value)
			}
		}
		return first, second
	}
	a, b := order(1)
	c, _ := order(2)
	if slices.IsSorted(a) || slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("orders: %v\n%v\n%v", a, b, c)
	}
	for i, x := range a {
		if x < i-20 || x > i+20 {
			t.Errorf("line %d is dealt out as number %d: further than the buffer", x, i)
		}
	}
}

func TestStream_NoRecords(t *testing.T) {
	empty, blank := writeFile(t, "a", nil), writeFile(t, "b", []byte("\n \r\n\n"))
	if got := stream[item](t, []string{empty, blank}, &dataset.StreamOptions{Epochs: -1, Shuffle: 5}); got != nil {
		t.Errorf("records of nothing: %v", got)
	}
}

func TestStreamBatches_Forever(t *testing.T) {
	file := writeFile(t, "n.jsonl", []byte("1\n2\n3\n"))
	var got []art.Batch[int]
	for b, err := range dataset.StreamBatches[int]([]string{file}, 2, &dataset.StreamOptions{Epochs: -1}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, b.Batch); len(got) == 3 {
			break
		}
	}
	wantEqual(t, "batches", got, []art.Batch[int]{
		{Step: 0, Items: []int{1, 2}}, {Step: 1, EpochStep: 1, Items: []int{3}}, {Step: 2, Epoch: 1, Items: []int{1, 2}},
	})
}

// Batches continue from every position, and after every number of steps.
func TestStreamBatches_ResumeProperty(t *testing.T) {
	const seed = 6
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		files := itemFiles(t, r, 1+r.IntN(20), 1+r.IntN(3))
		size := 1 + r.IntN(6)
		opts := dataset.StreamOptions{Shuffle: r.IntN(9), Seed: r.Uint64(), Epochs: 1 + r.IntN(3)}
		whole := batches(t, files, size, &opts)
		for i := range whole {
			if whole[i].Step != i {
				t.Fatalf("batch %d is step %d", i, whole[i].Step)
			}
			rest := whole[i+1:]
			fromPosition, fromStep := opts, opts
			fromPosition.From, fromStep.Skip = stored(t, whole[i].Next), i+1
			if a, b := batches(t, files, size, &fromPosition), batches(t, files, size, &fromStep); len(a)+len(b)+len(rest) > 0 {
				wantEqual(t, "rest from a position", a, rest)
				wantEqual(t, "rest from a step", b, rest)
			}
		}
	}
}

// streamErr returns the error that ends a stream, and how many records came before.
func streamErr(files []string, opts *dataset.StreamOptions) (n int, err error) {
	for _, err := range dataset.Stream[item](files, opts) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestStream_BadLines(t *testing.T) {
	const good = "{\"id\":1}\n"
	whole := gzipped([]byte(strings.Repeat(good, 1000)))
	for name, test := range map[string]struct {
		data  []byte
		words []string
	}{
		"not JSON":      {[]byte(good + "\nid: 2\n" + good), []string{":3: "}},
		"another type":  {[]byte(good + "{\"id\":\"2\"}\n"), []string{":2: ", "string"}},
		"two values":    {[]byte(good + "{\"id\":2} {\"id\":3}\n"), []string{":2: "}},
		"cut off":       {[]byte(good + good + "{\"id\":"), []string{":3: ", "ends in the middle"}},
		"not UTF-8":     {[]byte(good + "{\"id\":2,\"x\":\"\xff\"}\n"), []string{":2: ", "UTF-8"}},
		"UTF-16":        {[]byte("\xff\xfe{\x00}\x00\n\x00"), []string{":1: ", "UTF-8"}},
		"gzip cut off":  {whole[:len(whole)-9], []string{"gzip", "unexpected EOF"}},
		"gzip damaged":  {append(slices.Clone(whole[:len(whole)-8]), 1, 2, 3, 4, 5, 6, 7, 8), []string{"gzip", "checksum"}},
		"gzip header":   {[]byte("\x1f\x8b\x09nothing else"), []string{"gzip"}},
		"line too long": {[]byte(good + `{"id":2,"x":"` + strings.Repeat("x", 200) + "\"}\n"), []string{":2: ", "longer than 100 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, "data.jsonl", test.data)
			_, err := streamErr([]string{file}, &dataset.StreamOptions{MaxLine: 100})
			wantErr(t, err, art.ErrInvalid, append(test.words, file)...)
		})
	}
}

// A line of 100 MB is refused at the limit, without being held: here compressed, so that the file itself is small.
func TestStream_HugeLine(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 100 {
		w.Write(chunk)
	}
	w.Close()
	file := writeFile(t, "huge.jsonl", b.Bytes())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := streamErr([]string{file}, &dataset.StreamOptions{MaxLine: 1 << 20})
	runtime.ReadMemStats(&after)
	wantErr(t, err, art.ErrInvalid, file+":1: ", "longer than 1048576 bytes", "MaxLine")
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 20<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
	_, err = streamErr([]string{file}, nil)
	wantErr(t, err, art.ErrInvalid, "longer than 16777216 bytes")
}

func TestStream_BadOptions(t *testing.T) {
	file := writeFile(t, "n.jsonl", []byte("{\"id\":1}\n{\"id\":2}\n"))
	position := stream[item](t, []string{file}, &dataset.StreamOptions{Seed: 1, Shuffle: 2})[0].Next
	for name, test := range map[string]struct {
		files []string
		opts  dataset.StreamOptions
		words string
	}{
		"no files":     {nil, dataset.StreamOptions{}, "no files"},
		"no such file": {[]string{file, file + "x"}, dataset.StreamOptions{}, "no such file"},
		"a folder":     {[]string{filepath.Dir(file)}, dataset.StreamOptions{}, "directory"},
		"negative":     {[]string{file}, dataset.StreamOptions{Skip: -1, MaxLine: -1}, "MaxLine is -1, want > 0; Skip is -1"},
		"other seed":   {[]string{file}, dataset.StreamOptions{Shuffle: 2, Seed: 2, From: &position}, "other files, Shuffle or Seed"},
		"other buffer": {[]string{file}, dataset.StreamOptions{Shuffle: 3, Seed: 1, From: &position}, "other files, Shuffle or Seed"},
		"other files":  {[]string{file, file}, dataset.StreamOptions{Shuffle: 2, Seed: 1, From: &position}, "other files, Shuffle or Seed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := streamErr(test.files, &test.opts)
			if err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("error is %v, want it to say %q", err, test.words)
			}
			for _, err = range dataset.StreamBatches[item](test.files, 2, &test.opts) {
				if err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("error of batches is %v, want it to say %q", err, test.words)
			}
		})
	}
}

// A position behind the end of a file that has become shorter is an error, as is one that no stream gave.
func TestStream_BadPosition(t *testing.T) {
	for _, wrap := range []func([]byte) []byte{bytes.Clone, gzipped} {
		file := writeFile(t, "n.jsonl", wrap([]byte("{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n")))
		at := stream[item](t, []string{file}, nil)[1].Next
		if err := os.WriteFile(file, wrap([]byte("{\"id\":1}\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := streamErr([]string{file}, &dataset.StreamOptions{From: &at})
		wantErr(t, err, art.ErrInvalid, file, "shorter than the position")
		for _, bad := range []dataset.StreamPosition{{File: 2}, {Line: -1}, {Offset: -1}} {
			bad.Stream = at.Stream
			_, err := streamErr([]string{file}, &dataset.StreamOptions{From: &bad})
			wantErr(t, err, art.ErrInvalid, "no position that a stream gave")
		}
		far := dataset.StreamPosition{Stream: at.Stream, Dealt: math.MaxInt}
		_, err = streamErr([]string{file}, &dataset.StreamOptions{From: &far})
		wantErr(t, err, art.ErrInvalid, "shorter than the position")
	}
}

// Whatever a file and a position hold, a stream ends, and its errors are of art.
func FuzzStream(f *testing.F) {
	f.Add([]byte("{\"id\":1}\n{\"id\":2}"), 0, 0, int64(0), 0, 0)
	f.Add(gzipped([]byte("{\"id\":1}\n\n{\"id\":2}\n")), 1, 0, int64(9), 1, 3)
	f.Add([]byte("\ufeff1\n\"\xff\"\r\n[\n"), 0, 1, int64(4), 2, 1)
	f.Fuzz(func(t *testing.T, data []byte, dealt, file int, offset int64, buffer, shuffle int) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		opts := dataset.StreamOptions{Shuffle: shuffle % 10, Epochs: 2, MaxLine: 1000}
		records := drainAny(t, path, &opts)
		for _, r := range records {
			opts.From = &r.Next
			drainAny(t, path, &opts)
			opts.From = &dataset.StreamPosition{Stream: r.Next.Stream, Dealt: dealt, File: file, Offset: offset, Buffer: buffer}
		}
		drainAny(t, path, &opts)
	})
}

// drainAny reads a stream to its end or its error.
func drainAny(t *testing.T, path string, opts *dataset.StreamOptions) []dataset.StreamRecord[any] {
	var records []dataset.StreamRecord[any]
	for r, err := range dataset.Stream[any]([]string{path}, opts) {
		if err != nil {
			if !strings.HasPrefix(err.Error(), "art: ") {
				t.Errorf("error is %v", err)
			}
			return nil
		}
		records = append(records, r)
	}
	return records
}

// numbers are those below n.
func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
