package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

func TestTrajectories_ReadWhatWasWritten(t *testing.T) {
	g := generator{seeded(t)}
	for range 60 {
		groups := g.groups(1 + g.IntN(3))
		content, err := encodeGroups(groups)
		require.NoError(t, err)
		got, err := decodeGroups(content)
		require.NoError(t, err)
		require.Equal(t, len(groups), len(got))
		for i := range groups {
			require.True(t, reflect.DeepEqual(groups[i], got[i]), "group %d\nwant %s\ngot  %s", i, dump(groups[i]), dump(got[i]))
		}
	}
}

// TestTrajectories_FirstColumns reads a file that was written before settings had the column shape: what the column
// exact says of other columns still holds.
func TestTrajectories_FirstColumns(t *testing.T) {
	content, err := os.ReadFile("testdata/version1.parquet") // by encodeGroups of commit 535dcb0
	require.NoError(t, err)
	groups, err := decodeGroups(content)
	require.NoError(t, err)
	require.Len(t, groups, 1)
	got := groups[0].Trajectories[0]
	require.Equal(t, []string{}, groups[0].Logs)
	require.Equal(t, []string{}, got.Logs)
	require.Equal(t, "\xff", got.Messages[2].Content)
	require.Equal(t, []art.ToolCall{}, got.Messages[1].ToolCalls)
	require.Equal(t, &art.Sample{
		PromptIDs: []int32{1, 2}, IDs: []int32{3}, Logprobs: []float32{-0.5}, Forced: []bool{}, Step: 1, Finish: art.FinishStop,
		Settings: art.Sampling{Temperature: 0.7, TopP: 1, Stop: []string{}, Seed: 9},
	}, got.Messages[1].Sample)
}

func TestTrajectories_InputIsUnchanged(t *testing.T) {
	logs, stop := []string{"cut \xf0\x9f"}, []string{"\xff"}
	trajectory := &art.Trajectory{Logs: logs}
	trajectory.Add(art.Message{Role: "assistant", Sample: &art.Sample{Settings: art.Sampling{Stop: stop}}})
	_, err := encodeGroups([]*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{trajectory}, Logs: logs}})
	require.NoError(t, err)
	require.Equal(t, "cut \xf0\x9f", logs[0])
	require.Equal(t, "\xff", stop[0])
}

func TestTrajectories_NaNs(t *testing.T) {
	payload := math.Float64frombits(0x7ff8000000001234)
	trajectory := &art.Trajectory{
		Reward: payload, Metrics: map[string]float64{"m": math.NaN()}, Metadata: map[string]any{"l": math.NaN(), "s": "NaN"},
	}
	logprobs := []float32{math.Float32frombits(0x7fc01234)}
	trajectory.Add(art.Message{Role: "assistant", Sample: &art.Sample{Logprobs: logprobs}})

	content, err := encodeGroups([]*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{trajectory}}})
	require.NoError(t, err)
	groups, err := decodeGroups(content)
	require.NoError(t, err)
	got := groups[0].Trajectories[0]
	require.Equal(t, math.Float64bits(payload), math.Float64bits(got.Reward))
	require.True(t, math.IsNaN(got.Metrics["m"]))
	require.True(t, math.IsNaN(got.Metadata["l"].(float64)))
	require.Equal(t, "NaN", got.Metadata["s"])
	require.Equal(t, uint32(0x7fc01234), math.Float32bits(got.Messages[0].Sample.Logprobs[0]))
}

// A message that was read from JSON and changed since is stored with its changes and with what only the JSON held.
func TestTrajectories_ChangedWireMessage(t *testing.T) {
	var m art.Message
	require.NoError(t, json.Unmarshal([]byte(wireMessages[1]), &m))
	m.Content, m.ToolCalls[0].Arguments = "cut \xf0", "{}"
	trajectory := &art.Trajectory{History: art.History{Messages: []art.Message{m}}}
	content, err := encodeGroups([]*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{trajectory}}})
	require.NoError(t, err)
	groups, err := decodeGroups(content)
	require.NoError(t, err)
	got := groups[0].Trajectories[0].Messages[0]
	require.Equal(t, m.Content, got.Content)
	require.Equal(t, "{}", got.ToolCalls[0].Arguments)
	want, err := m.MarshalJSON()
	require.NoError(t, err)
	text, err := got.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

func TestTrajectories_TimeZone(t *testing.T) {
	start := time.Date(2026, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3*3600+1800))
	content, err := encodeGroups([]*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Start: start}}}})
	require.NoError(t, err)
	groups, err := decodeGroups(content)
	require.NoError(t, err)
	require.Equal(t, start.Format(time.RFC3339Nano), groups[0].Trajectories[0].Start.Format(time.RFC3339Nano))
}

func TestTrajectories_Refused(t *testing.T) {
	r := openTemp(t, 0)
	for name, groups := range map[string][]*art.TrajectoryGroup{
		"group 0: it is nil":              {nil},
		"trajectory 0 is nil":             {{Trajectories: []*art.Trajectory{nil}}},
		`metadata "k": int64`:             {{Metadata: map[string]any{"k": int64(1)}}},
		`metric name "\xff" is not UTF-8`: {{Metrics: map[string]float64{"\xff": 1}}},
	} {
		err := r.WriteTrajectories("train", 0, groups)
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, name)
	}
	require.ErrorIs(t, r.WriteTrajectories("../train", 0, nil), art.ErrInvalid)
	require.ErrorIs(t, r.WriteTrajectories("train", 2, nil), art.ErrInvalid)
	require.ErrorIs(t, r.WriteTrajectories("train", -1, nil), art.ErrInvalid)
	_, err := r.ReadTrajectories("..", 0)
	require.ErrorIs(t, err, art.ErrInvalid)
	_, err = r.ReadTrajectories("train", 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestTrajectories_Replace(t *testing.T) {
	r := openTemp(t, 3)
	g := generator{seeded(t)}
	first, second := g.groups(2), g.groups(1)
	require.NoError(t, r.WriteTrajectories("val", 3, first))
	require.NoError(t, r.WriteTrajectories("val", 3, second))
	got, err := r.ReadTrajectories("val", 3)
	require.NoError(t, err)
	require.True(t, reflect.DeepEqual(second, got))

	require.NoError(t, r.WriteTrajectories("val", 3, nil))
	got, err = r.ReadTrajectories("val", 3)
	require.NoError(t, err)
	require.Nil(t, got)
}

// Every damaged byte and every truncation is noticed.
func TestTrajectories_Damage(t *testing.T) {
	groups := generator{seeded(t)}.groups(1)
	content, err := encodeGroups(groups)
	require.NoError(t, err)
	r := openTemp(t, 0)
	dir := filepath.Join(r.Dir(), "trajectories", "train")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	read := func(damaged []byte) error {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "0000.parquet"), damaged, 0o644))
		_, err := r.ReadTrajectories("train", 0)
		return err
	}
	require.NoError(t, read(content))
	step := max(1, len(content)/300)
	for i := 0; i < len(content); i += step {
		content[i] ^= 0x10
		err := read(content)
		require.ErrorIs(t, err, art.ErrCorrupt, "byte %d of %d", i, len(content))
		require.ErrorContains(t, err, "0000.parquet")
		content[i] ^= 0x10
		require.ErrorIs(t, read(content[:i]), art.ErrCorrupt, "cut at %d", i)
	}
}

// A file that passes its checksum and is not one of ours is an error, whatever the library makes of it.
func TestTrajectories_ForeignFile(t *testing.T) {
	content, err := writeRows([]trajectoryRow{{}})
	require.NoError(t, err)
	later := bytes.Replace(content, []byte(formatKey+"\x18\x011"), []byte(formatKey+"\x18\x01x"), 1)
	sealed, err := seal(later)
	require.NoError(t, err)
	_, err = decodeGroups(sealed)
	require.ErrorContains(t, err, `format "x"`)

	sealed, err = seal(content) // a row without a group
	require.NoError(t, err)
	_, err = decodeGroups(sealed)
	require.ErrorContains(t, err, "group 0 after 0 groups")
}

func TestTrajectories_PanicOfTheLibraryIsAnError(t *testing.T) {
	read := func() (err error) {
		defer catch(&err)
		panic(errors.New("boom"))
	}
	require.ErrorContains(t, read(), "boom")
}

func dump(v any) string {
	content, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// The checksum keeps damaged bytes from the Parquet library: nothing but what was sealed is read.
func FuzzUnseal(f *testing.F) {
	content, err := encodeGroups(nil)
	require.NoError(f, err)
	f.Add(content)
	f.Add([]byte("PAR1\x00\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if unsealed, err := unseal(content); err == nil {
			again, err := seal(unsealed)
			require.NoError(t, err)
			require.Equal(t, content, again)
		}
		sealed, err := seal(content)
		if err != nil {
			return
		}
		unsealed, err := unseal(sealed)
		require.NoError(t, err)
		require.Equal(t, content, unsealed)
	})
}

// Rows of any content are groups or an error, and groups that can be stored again.
func FuzzAddRow(f *testing.F) {
	g := generator{rand.New(rand.NewPCG(1, 1))}
	for i := range 30 {
		rows, err := groupRows(g.group(), 0)
		require.NoError(f, err)
		rows[0].Exact = []*exactRow{rows[0].Exact, {EmptyLists: []int32{1}, Texts: []exactTxt{{Ordinal: 2}}}}[i%2]
		if content, err := json.Marshal(rows); err == nil { // it has no infinity
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var rows []trajectoryRow
		if json.Unmarshal(content, &rows) != nil {
			return
		}
		var groups []*art.TrajectoryGroup
		for i := range rows {
			var err error
			if groups, err = addRow(groups, &rows[i]); err != nil {
				return
			}
		}
		for i, group := range groups {
			_, err := groupRows(group, i)
			require.NoError(t, err)
		}
	})
}
