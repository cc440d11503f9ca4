package main

import (
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// place is what fill should have replaced.
var place = regexp.MustCompile(`\{(\d|name|result)\}`)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// draws returns n chats.
func draws(n int, generate func(*rand.Rand) example) []example {
	rng := seeded(1)
	out := make([]example, n)
	for i := range out {
		out[i] = generate(rng)
	}
	return out
}

func TestGenerate_Deterministic(t *testing.T) {
	first := draws(2000, generate)
	if !reflect.DeepEqual(first, draws(2000, generate)) {
		t.Error("the same seed gives other chats")
	}
	other := seeded(2)
	same := 0
	for _, e := range first {
		if reflect.DeepEqual(e, generate(other)) {
			same++
		}
	}
	if same > 50 { // small talk meets itself
		t.Errorf("another seed gives %d chats of 2000 that are the same", same)
	}
	if !slices.Equal(corpus(1, 100), corpus(1, 100)) || slices.Equal(corpus(1, 100), corpus(2, 100)) {
		t.Error("the corpus is not a function of its seed")
	}
}

func TestMixture_Percents(t *testing.T) {
	if total := totalWeight(); total != 100 {
		t.Errorf("the weights add up to %d", total)
	}
	games := 0
	for _, e := range draws(10_000, generate) {
		if e.messages[0].Content == ticTacToeRules {
			games++
		}
	}
	if games < 3050 || games > 3350 {
		t.Errorf("%d of 10000 chats are tic-tac-toe, want about 32%%", games)
	}
}

// TestGenerate_Turns checks the order of the roles in all chats, and that nothing is left to fill in.
func TestGenerate_Turns(t *testing.T) {
	next := map[art.Role][]art.Role{
		"":                {art.RoleSystem, art.RoleUser},
		art.RoleSystem:    {art.RoleUser},
		art.RoleUser:      {art.RoleAssistant},
		art.RoleAssistant: {art.RoleUser, art.RoleTool},
		art.RoleTool:      {art.RoleAssistant},
	}
	for _, e := range draws(20_000, generate) {
		last := art.Role("")
		for _, m := range e.messages {
			calls := len(m.ToolCalls) > 0
			if !slices.Contains(next[last], m.Role) || calls == (m.Content != "") || calls && m.Role != art.RoleAssistant {
				t.Fatalf("%s follows %q with %q in %+v", m.Role, last, m.Content, e)
			}
			if place.MatchString(m.Content) {
				t.Fatalf("a place is left to fill in: %q", m.Content)
			}
			last = m.Role
		}
		if last != art.RoleAssistant {
			t.Fatalf("the chat ends with %q: %+v", last, e)
		}
	}
}

// TestStages_Size: with the model's vocabulary most chats of a stage are not longer than it allows.
func TestStages_Size(t *testing.T) {
	tok, template := trained(t)
	t.Logf("vocabulary of %d", tok.VocabSize())
	const n = 800
	for _, s := range stages {
		sizes, long := make([]int, n), 0
		for i, e := range draws(n, s.generate) {
			ids, _, err := template.Target(e.messages, e.tools)
			if err != nil {
				t.Fatal(err)
			}
			if sizes[i] = len(ids); len(ids) > s.limit {
				long++
			}
		}
		slices.Sort(sizes)
		t.Logf("%s: median %d tokens, 99%% %d, most %d", s.name, sizes[n/2], sizes[n-n/100], sizes[n-1])
		if long > n/8 {
			t.Errorf("%s: %d of %d chats have more than %d tokens", s.name, long, n, s.limit)
		}
	}
}

// trained returns a tokenizer made as the model's is, of fewer chats, and its chat template.
func trained(t *testing.T) (*tokenizer.Tokenizer, *chat.Template) {
	t.Helper()
	tok, err := trainOnce()
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.New(tok, chat.ChatML)
	if err != nil {
		t.Fatal(err)
	}
	return tok, template
}

// trainOnce trains the tokenizer of trained, which takes a second.
var trainOnce = sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
	vocab, err := trainBPE(corpus(1, 3000), numMerges, pattern, specials)
	if err != nil {
		return nil, err
	}
	config, err := tokenizerConfig("")
	if err != nil {
		return nil, err
	}
	return tokenizer.New(vocab, config)
})

// checkUniform is a chi-square test of counts that should be equal. The seeds are fixed, so a pass stays a pass; the
// bound is four standard deviations above the mean.
func checkUniform(t *testing.T, what string, counts []int) {
	t.Helper()
	total := 0
	for _, c := range counts {
		total += c
	}
	want, chi := float64(total)/float64(len(counts)), 0.0
	for _, c := range counts {
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	free := float64(len(counts) - 1)
	if total < 20*len(counts) || chi > free+4*math.Sqrt(2*free) {
		t.Errorf("%s: not uniform, chi-square %.1f with %v degrees of freedom: %v", what, chi, free, counts)
	}
}
