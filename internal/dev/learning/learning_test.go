package learning

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

var games = flag.Bool("games", false, "measure tic-tac-toe and self-play too, which goes through all positions")

// TestTasks: each task begins, makes a step of each kind, and is measured before and after it. What it learns takes
// longer: go run ./internal/dev/cmd/learning.
func TestTasks(t *testing.T) {
	if testing.Short() {
		t.Skip("trains seven models")
	}
	for _, task := range Tasks() {
		t.Run(task.Name, func(t *testing.T) {
			if !*games && (task.Name == "tic-tac-toe" || task.Name == "self-play") {
				t.Skip("takes seconds; give -games")
			}
			steps := 1
			if s, ok := task.Start().(Shower); ok {
				if chats, _ := s.Show(); len(chats) > 0 {
					steps = 2 // the first is supervised
				}
			}
			r, err := Run(t.Context(), task, Options{Dir: t.TempDir(), Seed: 1, Steps: steps, Shown: 16})
			if err != nil {
				t.Fatal(err)
			}
			if r.Steps != steps || len(r.Curve) != 1+steps || r.Seconds <= 0 {
				t.Errorf("%+v", r)
			}
			t.Logf("%s: %v", task.Measure, r.Curve)
		})
	}
}

// What is shown before the training of reverse has the right answer once among the orders of the letters, and nothing
// of the words that are held out.
func TestShow(t *testing.T) {
	a := ReverseWord().Start().(*questions)
	answers := map[string][]string{}
	for _, q := range a.shown {
		answers[q.text] = append(answers[q.text], q.answer)
	}
	for _, q := range a.known {
		letters := strings.Fields(q.answer)
		slices.Sort(letters)
		if all := answers[q.text]; len(all) != 6 || !slices.Contains(all, q.answer) {
			t.Fatalf("%q, %q is shown as %q", q.text, q.answer, all)
		}
		for _, shown := range answers[q.text] {
			if got := strings.Fields(shown); !slices.Equal(slices.Sorted(slices.Values(got)), letters) {
				t.Errorf("%q is shown as %q", q.text, shown)
			}
		}
	}
	for _, q := range a.unseen {
		if answers[q.text] != nil {
			t.Errorf("%q is held out and shown", q.text)
		}
	}
	chats, _ := a.Show()
	if last := chats[0].Messages[1]; len(chats) != len(a.shown) || last.Content != a.shown[0].answer {
		t.Errorf("%d chats of %d answers, the first is %+v", len(chats), len(a.shown), chats[0])
	}
}

// Each sum is shown with its answer, as often with any other number that is near it.
func TestShow_Addition(t *testing.T) {
	a := Addition().Start().(*questions)
	answers := map[string][]string{}
	for _, q := range a.shown {
		answers[q.text] = append(answers[q.text], q.answer)
	}
	if len(a.known) != 100 || len(answers) != 100 {
		t.Errorf("%d sums, %d are shown", len(a.known), len(answers))
	}
	for _, q := range a.known {
		sum, err := strconv.Atoi(q.answer)
		if err != nil {
			t.Fatal(err)
		}
		all := answers[q.text]
		if want := min(sum, maxError) + 1 + maxError; len(all) != want || !slices.Contains(all, q.answer) {
			t.Errorf("%s%d is shown as %q, want %d answers", q.text, sum, all, want)
		}
	}
}

// The games that are shown keep to the hints: each guess is in the range that they leave.
func TestShow_Guess(t *testing.T) {
	games, _ := guesser{}.Show()
	found := 0
	for _, g := range games {
		low, high, last := 1, guessRange, 0
		for _, m := range g.Messages {
			switch m.Content {
			case "higher":
				low = last + 1
			case "lower":
				high = last - 1
			}
			if m.Role != art.RoleAssistant {
				continue
			}
			var err error
			if last, err = strconv.Atoi(m.Content); err != nil || last < low || last > high {
				t.Fatalf("%q where %d to %d are left", m.Content, low, high)
			}
		}
		if g.Messages[len(g.Messages)-1].Role == art.RoleAssistant {
			found++
		}
	}
	if share := float64(found) / float64(len(games)); share < 0.5 || share > 0.9 {
		t.Errorf("%.2f of the games find the number: it is no player that moves by chance", share)
	}
}

// TestYesNoMaybe: the quickest of the tasks reaches its aim. A finished run is read again, and not measured again.
func TestYesNoMaybe(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model for 12 steps")
	}
	dir, measured := t.TempDir(), 0
	var curves [][]Point
	for range 2 {
		r, err := Run(t.Context(), YesNoMaybe(), Options{Dir: dir, Seed: 1, Report: func(*Task, Point) { measured++ }})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("seed 1: ", r.Curve)
		if !r.Reached {
			t.Error("the aim is not reached")
		}
		curves = append(curves, r.Curve)
	}
	if measured != 13 || !slices.Equal(curves[0], curves[1]) {
		t.Errorf("measured %d times, want 13: %v", measured, curves)
	}
}

// scripted returns a player that moves by a rule.
func scripted(move func(b *board) int) Reply {
	return func(_ context.Context, chat *art.Trajectory) (string, error) {
		var b board
		for _, m := range chat.Messages {
			cell, err := strconv.Atoi(m.Content)
			switch {
			case err != nil:
			case m.Role == art.RoleAssistant:
				b[cell-1] = 'A'
			default:
				b[cell-1] = 'B'
			}
		}
		text := strconv.Itoa(move(&b) + 1)
		chat.Add(art.Assistant(text))
		return text, nil
	}
}

// value is the outcome for 'A' of perfect play: 1, 0 or -1.
func value(b board, mark byte) int {
	if b.over() {
		switch {
		case b.won('A'):
			return 1
		case b.won('B'):
			return -1
		}
		return 0
	}
	best := -2
	sign := map[byte]int{'A': 1, 'B': -1}[mark]
	for _, cell := range b.free() {
		next := b
		next[cell] = mark
		best = max(best, sign*value(next, 'A'+'B'-mark))
	}
	return sign * best
}

// A perfect player loses no line on either side. The first free cell loses some, and what is no move loses all.
func TestExplore(t *testing.T) {
	perfect := scripted(func(b *board) int {
		best, at := -2, 0
		for _, cell := range b.free() {
			next := *b
			next[cell] = 'A'
			if v := value(next, 'B'); v > best {
				best, at = v, cell
			}
		}
		return at
	})
	lowest := scripted(func(b *board) int { return b.free()[0] })
	taken := scripted(func(*board) int { return 4 })
	for _, first := range []bool{true, false} {
		p, err := Explore(t.Context(), perfect, first)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Explore(t.Context(), lowest, first)
		if err != nil {
			t.Fatal(err)
		}
		if p.Lost+p.Illegal != 0 || p.Score < 0.9 || l.Lost == 0 || l.Illegal != 0 || l.Score >= p.Score {
			t.Errorf("first %v: perfect %+v, lowest cell %+v", first, *p, *l)
		}
		if len(l.Defeats) != l.Lost || len(p.Defeats) != 0 {
			t.Errorf("first %v: %d of %d defeats", first, len(l.Defeats), l.Lost)
		}
		x, err := Explore(t.Context(), taken, first)
		if err != nil || x.Illegal != x.All || x.Score != 0 {
			t.Errorf("illegal moves: %+v, %v", x, err)
		}
	}
}

// TestPosition: a lost game goes on where the agent is to move, and its opponent repeats what it did for as long as the
// agent does.
func TestPosition(t *testing.T) {
	lowest := scripted(func(b *board) int { return b.free()[0] })
	lines, err := Explore(t.Context(), lowest, false)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, game := range lines.Defeats {
		p := position(game, random)
		for !p.board.over() {
			cell := p.board.free()[0]
			p.board[cell] = 'A'
			p.trajectory.Add(art.Assistant(strconv.Itoa(cell + 1)))
			cell, ok := p.repeated()
			if !ok || p.board[cell] != 0 {
				t.Fatalf("%v of %v: cell %d, %v", p.trajectory.Messages, game.Messages, cell, ok)
			}
			p.sees(cell)
		}
		if len(p.trajectory.Messages) != len(game.Messages) || !p.board.won('B') {
			t.Errorf("%v in place of %v", p.trajectory.Messages, game.Messages)
		}
		other := position(game, random)
		other.trajectory.Add(art.Assistant("another move"))
		if cell, ok := other.repeated(); ok {
			t.Errorf("repeats %d after another move", cell)
		}
	}
}

// The probabilities of all lines add up: a player that always draws or wins has the score that says so, and the score
// of the lowest free cell is the mean over random games.
func TestExplore_Score(t *testing.T) {
	lowest := scripted(func(b *board) int { return b.free()[0] })
	exact, err := Explore(t.Context(), lowest, true)
	if err != nil {
		t.Fatal(err)
	}
	score, games := 0.0, 20000
	g, err := art.Gather(t.Context(), make([]int, games), func(ctx context.Context, _ int) (*art.Trajectory, error) {
		var b board
		random := art.Rand(ctx)
		for turn := 0; !b.over(); turn++ {
			free := b.free()
			if turn%2 == 0 {
				b[free[0]] = 'A'
			} else {
				b[free[random.IntN(len(free))]] = 'B'
			}
		}
		trajectory := art.NewTrajectory()
		switch {
		case b.won('A'):
			trajectory.Reward = 1
		case !b.won('B'):
			trajectory.Reward = 0.5
		}
		return trajectory, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	score = art.Metrics(g)["reward"]
	if math.Abs(score-exact.Score) > 0.015 {
		t.Errorf("%d random games have a score of %.3f, exactly it is %.3f", games, score, exact.Score)
	}
}

// Aims say what a curve has reached.
func TestAims(t *testing.T) {
	curve := []Point{{0, 50}, {10, 80}, {20, 72}, {30, 90}}
	for want, aim := range map[string]struct {
		Aim
		reached bool
	}{
		"at least 90":            {AtLeast(90), true},
		"at least 91":            {AtLeast(91), false},
		"at most 90 at the end":  {AtMost(90), true},
		"at most 72 at the end":  {AtMost(72), false},
		"never 9 below its best": {NeverFalls(9), true},
		"never 8 below its best": {NeverFalls(8), false},
	} {
		if aim.Text != want || aim.Reached(curve) != aim.reached {
			t.Errorf("%s: %q, reached %v", want, aim.Text, aim.Reached(curve))
		}
	}
	if got := matches("t a c", "t a x"); fmt.Sprintf("%.2f", got) != "0.67" || matches("t a c", "t a c t a c") != 0.5 {
		t.Errorf("matches: %v", got)
	}
}
