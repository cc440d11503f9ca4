package tenancy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/goart-dev/art/internal/stable"
)

// records are those of the journals of tests. A body that ends in zeros is one that a torn record could look like.
var records = []Record{
	{RecordRequest, 1, []byte("optim_step\x00application/json\x00{}")},
	{RecordBegun, 1, []byte{}},
	{RecordResult, 1, []byte(`{"Out":{}}`)},
	{RecordRequest, 2, make([]byte, 40)},
}

// currentJournal is a journal of this version, and the lengths up to the end of each record.
func currentJournal(list []Record) (data []byte, ends []int) {
	data = bytes.Clone(journalMagic)
	for _, r := range list {
		data = append(data, r.encode()...)
		ends = append(ends, len(data))
	}
	return data, ends
}

// oldJournal is one of the first version: no magic, and a header without a check of its own.
func oldJournal(list []Record) (data []byte, ends []int) {
	for _, r := range list {
		content := binary.LittleEndian.AppendUint64([]byte{r.Kind}, uint64(r.Seq))
		content = append(content, r.Body...)
		data = binary.LittleEndian.AppendUint32(data, uint32(len(content)))
		data = binary.LittleEndian.AppendUint32(data, crc32.ChecksumIEEE(content))
		data = append(data, content...)
		ends = append(ends, len(data))
	}
	return data, ends
}

var versions = map[string]func([]Record) ([]byte, []int){"current": currentJournal, "old": oldJournal}

// openFolder opens a folder that is closed with the test.
func openFolder(t testing.TB, dir string, disk stable.Disk) *Folder {
	t.Helper()
	f, err := OpenFolder(dir, discard, disk, "runs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// isPrefix reports whether a list is the beginning of another.
func isPrefix(list, of []Record) bool {
	return len(list) <= len(of) && (len(list) == 0 || reflect.DeepEqual(list, of[:len(list)]))
}

// TestJournal_BitFlips: a flipped bit anywhere is a refusal, or changes nothing.
func TestJournal_BitFlips(t *testing.T) {
	for name, version := range versions {
		data, _ := version(records)
		for bit := range 8 * len(data) {
			flipped := bytes.Clone(data)
			flipped[bit/8] ^= 1 << (bit % 8)
			p, err := parseJournal(flipped)
			if err == nil && !reflect.DeepEqual(p.records, records) {
				t.Errorf("%s: bit %d of byte %d lost records silently: %d of %d", name, bit%8, bit/8, len(p.records), len(records))
			}
			var damage *DamageError
			if err != nil && (!errors.As(err, &damage) || damage.Offset > int64(bit/8) || !isPrefix(p.records, records)) {
				t.Errorf("%s: byte %d: %v", name, bit/8, err)
			}
		}
	}
}

// TestJournal_Truncated: what is cut off anywhere is read up to the last whole record, also with zeros behind it.
func TestJournal_Truncated(t *testing.T) {
	for name, version := range versions {
		data, ends := version(records)
		for size := range len(data) + 1 {
			want := 0
			for want < len(ends) && ends[want] <= size {
				want++
			}
			p, err := parseJournal(data[:size])
			if err != nil || len(p.records) != want || !isPrefix(p.records, records) {
				t.Errorf("%s: cut to %d: %d records of %d, error %v", name, size, len(p.records), want, err)
			}
		}
		zeros := append(bytes.Clone(data), make([]byte, 5000)...)
		if p, err := parseJournal(zeros); err != nil || len(p.records) != len(records) {
			t.Errorf("%s: zeros behind it: %d records, error %v", name, len(p.records), err)
		}
	}
}

// TestJournal_HalfRecordInTheMiddle: the first version wrote behind what a full disk had left.
func TestJournal_HalfRecordInTheMiddle(t *testing.T) {
	for name, version := range versions {
		data, ends := version(records)
		half := append(bytes.Clone(data[:ends[1]+10]), data[ends[1]:]...)
		var damage *DamageError
		if p, err := parseJournal(half); !errors.As(err, &damage) || damage.Offset != int64(ends[1]) || damage.Records != 2 {
			t.Errorf("%s: %d records, error %v", name, len(p.records), err)
		}
	}
}

// TestJournal_Old: a journal of the first version is read and appended to.
func TestJournal_Old(t *testing.T) {
	f := openFolder(t, t.TempDir(), stable.Disk{})
	data, _ := oldJournal(records[:3])
	write(t, f.Path("runs", "a.journal"), append(data, "torn"...))
	for n := 3; n <= 4; n++ {
		j, got, err := f.OpenJournal("runs", "a.journal")
		if err != nil || !reflect.DeepEqual(got, records[:n]) {
			t.Fatalf("%d records, error %v", len(got), err)
		}
		if n == 3 {
			err = j.Append(records[3], true)
		}
		if err = errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJournal_Damaged: a damaged journal is refused, and left as it is.
func TestJournal_Damaged(t *testing.T) {
	f := openFolder(t, t.TempDir(), stable.Disk{})
	data, ends := currentJournal(records)
	data[ends[0]+1] ^= 4
	write(t, f.Path("runs", "a.journal"), data)
	_, _, err := f.OpenJournal("runs", "a.journal")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("byte %d", ends[0])) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadFile(f.Path("runs", "a.journal")); !bytes.Equal(left, data) {
		t.Error("the file was changed")
	}
}

// change is a step of what faults are injected into. It is tried again when it fails.
type change func(j *Journal, want *[]Record) error

// steps append, with sync and without, and replace.
func steps() (list []change) {
	for i := range 12 {
		r := Record{RecordRequest, i, bytes.Repeat([]byte{byte(i)}, 10*i)}
		list = append(list, func(j *Journal, want *[]Record) error {
			err := j.Append(r, i%3 != 2)
			if err == nil {
				*want = append(*want, r)
			}
			return err
		})
		if i == 7 {
			list = append(list, func(j *Journal, want *[]Record) error {
				kept := (*want)[4:]
				err := j.Replace(kept)
				if err == nil {
					*want = bytesOf(kept)
				}
				return err
			})
		}
	}
	return list
}

func bytesOf(list []Record) []Record { return append([]Record{}, list...) }

// TestJournal_Faults: whatever change of a file fails, and however, what Append has said to be stored can be read
// afterwards, in the same process and in the next one.
func TestJournal_Faults(t *testing.T) {
	probe := &injector{at: -1}
	runFaults(t, probe)
	if probe.seen < 30 {
		t.Fatalf("%d changes", probe.seen)
	}
	for at := range probe.seen {
		if testing.Short() && at%3 != 0 {
			continue
		}
		for _, fault := range []*injector{
			{at: at, err: syscall.EIO}, {at: at, err: syscall.ENOSPC, lasts: 3}, {at: at, err: syscall.ENOSPC, lasts: 12},
			{at: at, err: syscall.EIO, done: true},
		} {
			runFaults(t, fault)
		}
	}
}

// runFaults makes the steps with a fault, tries again what has failed, and reads the journal.
func runFaults(t *testing.T, fault *injector) {
	t.Helper()
	at := fault.at
	fault.at = -1
	f := openFolder(t, t.TempDir(), stable.Disk{Hook: fault.change})
	defer f.Close()
	fault.at, fault.seen = at, 0
	var j *Journal
	for try := 0; j == nil; try++ {
		var err error
		if j, _, err = f.OpenJournal("runs", "a.journal"); try > 30 {
			t.Fatalf("%+v: the journal does not open: %v", fault, err)
		}
	}
	var want []Record
	check := func() {
		t.Helper()
		if read, err := f.peek("runs", "a.journal"); err != nil || !holds(read, want) {
			t.Fatalf("%+v: after an error %d records, want %d: %v", fault, len(read), len(want), err)
		}
	}
	for _, step := range steps() {
		for try := 0; step(j, &want) != nil; try++ {
			check()
			if other := (Record{RecordEnded, 99, []byte{}}); j.Append(other, false) == nil { // shorter than what has failed
				want = append(want, other)
				check()
			}
			if try > 30 {
				t.Fatalf("%+v: the journal does not recover", fault)
			}
		}
	}
	fault.at = -1
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, got, err := f.OpenJournal("runs", "a.journal")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v: %d records, want %d: %v", fault, len(got), len(want), err)
	}
	_ = j.Close()
}

// peek reads a journal as the next process would after a kill.
func (f *Folder) peek(parts ...string) ([]Record, error) {
	data, err := os.ReadFile(f.Path(parts...))
	if err != nil {
		return nil, err
	}
	p, err := parseJournal(data)
	return p.records, err
}

// holds reports whether a journal after a failed change has all that counts, and at most one record more; a failed
// replacement may have dropped the first four.
func holds(got, want []Record) bool {
	for _, list := range [][]Record{want, want[min(4, len(want)):]} {
		if isPrefix(list, got) && len(got) <= len(list)+1 {
			return true
		}
	}
	return false
}

// TestJournal_FailedSync: after a failed fsync nothing is stored until the file was read, and written again; when what
// it has is not what was written, nothing is.
func TestJournal_FailedSync(t *testing.T) {
	fault := &injector{at: -1, err: syscall.EIO}
	f := openFolder(t, t.TempDir(), stable.Disk{Hook: fault.change})
	j, _, err := f.OpenJournal("runs", "a.journal")
	if err == nil {
		err = j.Append(records[0], true)
	}
	if err != nil {
		t.Fatal(err)
	}
	fault.only, fault.lasts, fault.at = "sync", 2, fault.seen
	for range 3 {
		if err := j.Append(records[1], true); !errors.Is(err, syscall.EIO) {
			t.Fatalf("error %v", err)
		}
	}
	write(t, f.Path("runs", "a.journal"), journalMagic) // the kernel has dropped a page
	for range 2 {
		if err := j.Append(records[1], true); err == nil {
			t.Fatal("a journal that has lost a record goes on")
		}
	}
	data, _ := currentJournal(records[:1])
	write(t, f.Path("runs", "a.journal"), data)
	if err := j.Append(records[1], true); err != nil {
		t.Fatal(err)
	}
	if got, err := f.peek("runs", "a.journal"); err != nil || !reflect.DeepEqual(got, records[:2]) {
		t.Errorf("%d records: %v", len(got), err)
	}
	_ = j.Close()
}

// injector makes changes of a disk fail.
type injector struct {
	at    int    // the first that fails; -1 is none
	lasts int    // how many more
	only  string // the kind of changes that are counted; "" is all
	done  bool   // it is made, and fails nevertheless
	err   error
	seen  int
}

func (f *injector) change(op, path string, do func() error) error {
	if f.only != "" && op != f.only {
		return do()
	}
	n := f.seen
	f.seen++
	if f.at < 0 || n < f.at || n > f.at+f.lasts {
		return do()
	}
	switch {
	case f.done:
		return errors.Join(f.err, do())
	case op == "write":
		return errors.Join(f.err, halfWrite(path, do))
	}
	return f.err
}

// halfWrite writes the first half.
func halfWrite(path string, do func() error) error {
	before := int64(0)
	if info, err := os.Stat(path); err == nil {
		before = info.Size()
	}
	if err := do(); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, before+(info.Size()-before)/2)
}

// FuzzJournal: any file is read, and what is read is written and read again the same.
func FuzzJournal(f *testing.F) {
	for _, version := range versions {
		data, ends := version(records)
		f.Add(data)
		f.Add(data[:ends[2]+5])
		f.Add(append(bytes.Clone(data[:ends[1]]), make([]byte, 30)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseJournal(data)
		var damage *DamageError
		if err != nil && (!errors.As(err, &damage) || damage.Offset > int64(len(data)) || damage.Records != len(p.records)) {
			t.Fatalf("error %v of %d bytes", err, len(data))
		}
		if p.size > int64(len(data)) {
			t.Fatalf("%d bytes of %d", p.size, len(data))
		}
		again, _ := currentJournal(p.records)
		got, err := parseJournal(again)
		if err != nil || len(got.records) != len(p.records) || !isPrefix(got.records, p.records) {
			t.Fatalf("written again: %d records of %d: %v", len(got.records), len(p.records), err)
		}
		if p.current && !bytes.Equal(again, data[:p.size]) {
			t.Fatal("what is read is not what is written")
		}
	})
}

// BenchmarkJournal_Begun is what counting an attempt costs an operation.
func BenchmarkJournal_Begun(b *testing.B) {
	f := openFolder(b, b.TempDir(), stable.Disk{})
	j, _, err := f.OpenJournal("runs", filepath.Base(b.Name())+".journal")
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	for b.Loop() {
		if err := j.Append(Record{RecordBegun, 1, nil}, false); err != nil {
			b.Fatal(err)
		}
	}
}
