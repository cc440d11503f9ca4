package jsoncount_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/goart-dev/art/backend/server/internal/jsoncount"
)

var limits = jsoncount.Limits{
	Lists: map[string]int{"items": 2, "in.items": 3, "map": 2, "task": 1}, Trees: map[string]int{"meta": 4}, Other: 2,
}

func TestLimits_Check(t *testing.T) {
	for body, want := range map[string]string{
		`{"items":[1,2]}`:                                       "",
		`{"items":[{},null]}`:                                   "",
		`{"items":[1,2,3]}`:                                     `"items" has more than 2`,
		`{"items":[1],"x":{"items":["a","b"]}}`:                 `"items" has more than 2`, // together
		`{"items":[1],"items":[1,2]}`:                           `"items" has more than 2`, // twice
		`{"in":{"items":[1,2,3]}}`:                              "",
		`{"in":{"items":[1,2,3,4]}}`:                            `"in.items" has more than 3`,
		`{"in":[{"items":[1,2]},{"items":[3,4]}]}`:              `"in.items" has more than 3`,
		`{"items":[[],[]]}`:                                     "",
		`{"items":[[1],[2]]}`:                                   `"items"`, // lists of lists
		`{"ITEMS":[1,2,3]}`:                                     `"items"`,
		`{"\u0069tems":[1,2,3]}`:                                `"items"`,
		"{\"ta\u017f\u212a\":[1,2]}":                            `"task"`,
		`{"map":{"a":1,"b":2}}`:                                 "",
		`{"map":{"a":1,"b":2,"c":3}}`:                           `"map"`,
		`{"map":{"a":{"x":1,"y":1,"z":1}}}`:                     "", // a struct
		`{"meta":{"a":[1,2]}}`:                                  "",
		`{"meta":{"a":[1,2],"b":{"c":1}}}`:                      `"meta" has more than 4`,
		`{"meta":[[[[[]]]]]}`:                                   "",
		`{"meta":[[[[[[]]]]]]}`:                                 `"meta"`,
		`{"other":[1,2,3]}`:                                     "have more than 2",
		`[1,2,3]`:                                               "have more than 2",
		`{"a":{"b":1,"c":2,"d":3,"e":4}}`:                       "",
		`{"a":"items","b":[1,2]}`:                               "",
		`{"a":"\"items\":[1,2,3","b":[1]}`:                      "",
		strings.Repeat(`{"a":`, 300) + strings.Repeat("}", 300): "levels deep",
		`{"items":[1,2`:                                         "", `"`: "", `{"a`: "", `]}`: "", `{"a\`: "", `[,,,]`: "", ``: "",
	} {
		err := limits.Check([]byte(body))
		var exceeded *jsoncount.ExceededError
		if (err == nil) != (want == "") ||
			err != nil && (!errors.As(err, &exceeded) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.100s: error %v, want %q", body, err, want)
		}
	}
}

func TestLimits_Members(t *testing.T) {
	l := jsoncount.Limits{
		Lists: map[string]int{"plain": 10, "list": 10}, Trees: map[string]int{"tree": 10}, Other: 10, Members: 4,
		Plain: []string{"plain"},
	}
	for body, ok := range map[string]bool{
		`{"a":{"b":1,"c":2},"d":3}`:                      true,
		`{"a":{"b":1,"c":2,"e":3},"d":3}`:                false,
		`{"list":[{"b":1,"c":2},{"b":1}]}`:               true,
		`{"list":[{"b":1,"c":2},{"b":1,"c":2}]}`:         false,
		`{"plain":[{"b":1,"c":2,"d":3},{"b":1,"c":2}]}`:  true,
		`{"tree":{"b":1,"c":2,"d":3,"e":{"b":1,"c":2}}}`: true,
	} {
		if err := l.Check([]byte(body)); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "4 members") {
			t.Errorf("%s: error %v", body, err)
		}
	}
}

// TestLimits_CheckTakesNoMemory: it stops before what it counts takes memory.
func TestLimits_CheckTakesNoMemory(t *testing.T) {
	body := []byte(`{"items":[` + strings.Repeat("{},", 4_000_000) + `{}]}`)
	wide := jsoncount.Limits{Lists: map[string]int{"items": 5_000_000}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := wide.Check(body)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 1<<20 {
		t.Errorf("%d bytes, error %v", took, err)
	}
}

// FuzzLimits_Check: of what decodes, the check counts as many elements as there are, and nothing makes it panic.
func FuzzLimits_Check(f *testing.F) {
	for _, seed := range []string{
		`{"items":[1,[2],{"a":"b"}]}`, `[]`, `{"a":{"items":[null]}}`, `{"i\u0074ems":["\\\""]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var decoded struct{ Items []any }
		if json.Unmarshal(body, &decoded) != nil {
			_ = limits.Check(body)
			return
		}
		all := jsoncount.Limits{Lists: map[string]int{"items": len(decoded.Items) - 1}, Other: 1 << 30}
		if len(decoded.Items) > 0 && all.Check(body) == nil {
			t.Errorf("%q has %d items", body, len(decoded.Items))
		}
	})
}
