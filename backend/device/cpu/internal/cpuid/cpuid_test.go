package cpuid

import (
	"os"
	"regexp"
	"runtime"
	"testing"
)

func TestChoose(t *testing.T) {
	has := []Level{Portable, AVX2}
	for _, c := range []struct {
		name string
		want Level
		err  string
	}{
		{"", AVX2, ""},
		{"portable", Portable, ""},
		{"avx2", AVX2, ""},
		{"avx512", 0, `this CPU lacks "avx512"; it has [portable avx2]`},
		{"AVX2", 0, `no instruction set is called "AVX2"; there are portable, avx2, avx512, neon`},
	} {
		got, err := choose(c.name, has)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("choose(%q) = %v, %v; want %v, %q", c.name, got, err, c.want, c.err)
		}
	}
}

func TestDefault(t *testing.T) {
	t.Setenv(Env, "portable")
	if level, err := Default(); level != Portable || err != nil {
		t.Errorf("the level is %v, %v", level, err)
	}
	t.Setenv(Env, "abacus")
	const want = `ART_CPU: no instruction set is called "abacus"; there are portable, avx2, avx512, neon`
	if _, err := Default(); err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	t.Setenv(Env, "")
	levels := Supported()
	if level, err := Default(); level != levels[len(levels)-1] || err != nil {
		t.Errorf("the level is %v, %v", level, err)
	}
}

func TestLevel_String(t *testing.T) {
	if s := Level(9).String(); s != "Level(9)" {
		t.Error(s)
	}
}

// What the package says of the processor is what the system says.
func TestProcessor(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("the system does not tell who made the processor") // an emulated one neither
	}
	says := func(line string) bool { return regexp.MustCompile(`(?m)^` + line + `$`).Match(info) }
	if want := says(`vendor_id\s*: (AuthenticAMD|HygonGenuine)`); AMD() != want {
		t.Errorf("AMD is %v; the system says\n%s", AMD(), info)
	}
	want := says(`vendor_id\s*: GenuineIntel`) && says(`cpu family\s*: 6`) && says(`model\s*: 85`)
	if SkylakeServer() != want {
		t.Errorf("SkylakeServer is %v; the system says\n%s", SkylakeServer(), info)
	}
}
