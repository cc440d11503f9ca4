package learning

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// Rewards of a game. A draw is worth nearly a win.
const won, drawn, lost, illegal = 1.0, 0.8, 0.0, -0.5

// gameConfig is the configuration of both games.
func gameConfig(step int) *art.TrainConfig {
	return &art.TrainConfig{
		Loss: art.LossPPO, LearningRate: 1e-3 * min(1, 50/float64(step+1)), Epochs: 3, MiniBatches: 2, MaxGradNorm: 1,
		WeightDecay: new(0.0),
	}
}

// explore plays the greedy policy through all lines, on both sides.
func explore(ctx context.Context, m *art.Model) (map[string]float64, error) {
	metrics := map[string]float64{}
	player := func(ctx context.Context, t *art.Trajectory) (string, error) {
		reply, err := m.Chat(ctx, t, greedy())
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(reply.Content), nil
	}
	for _, side := range []string{"first", "second"} {
		l, err := Explore(ctx, player, side == "first")
		if err != nil {
			return nil, err
		}
		metrics["lines_"+side], metrics["lost_"+side] = float64(l.All), float64(l.Lost+l.Illegal)
		metrics["score"] += 50 * l.Score
	}
	return metrics, nil
}

// TicTacToe is trained against a program that wins where it can, and moves by chance otherwise.
func TicTacToe() *Task {
	return &Task{
		Name: "tic-tac-toe", What: "play tic-tac-toe against an opponent that wins where it can", Steps: 200, Every: 20,
		Aim: AtMost(0), Measure: "lines of play that the greedy policy loses, of all, as first and second player",
		Low: true, Context: 96, MaxTokens: 4, Rank: 32, Start: func() Agent { return ticTacToe{} },
	}
}

type ticTacToe struct{}

// Groups implements Agent.
func (ticTacToe) Groups(ctx context.Context, m *art.Model, step int) ([]*art.TrajectoryGroup, error) {
	return gather(ctx, []bool{true, false, true, false}, 32, step,
		func(ctx context.Context, first bool) (*art.Trajectory, error) { return against(ctx, m, first) })
}

// Config implements Agent.
func (ticTacToe) Config(step int) *art.TrainConfig { return gameConfig(step) }

// Measure implements Agent.
func (ticTacToe) Measure(ctx context.Context, m *art.Model) (map[string]float64, error) {
	metrics, err := explore(ctx, m)
	if err == nil {
		metrics["value"] = metrics["lost_first"] + metrics["lost_second"]
	}
	return metrics, err
}

// against plays a game against the program.
func against(ctx context.Context, m *art.Model, first bool) (*art.Trajectory, error) {
	random := art.Rand(ctx)
	p := &player{trajectory: begin(first)}
	for turn := 0; !p.board.over(); turn++ {
		if turn > 0 || !first {
			p.sees(sharp(&p.board, random))
		}
		if p.board.over() {
			break
		}
		if _, err := p.move(ctx, m); err != nil || p.broken {
			return p.reward(), err
		}
	}
	return p.reward(), nil
}

// sharp is a cell with which 'B' wins, or any free one.
func sharp(b *board, random *rand.Rand) int {
	free := b.free()
	for _, cell := range free {
		next := *b
		if next[cell] = 'B'; next.won('B') {
			return cell
		}
	}
	return free[random.IntN(len(free))]
}

// player is one side of a game, as it sees it.
type player struct {
	trajectory *art.Trajectory
	board      board
	broken     bool // off by an illegal move
}

// sees takes a move of the other side.
func (p *player) sees(cell int) {
	p.board[cell] = 'B'
	p.trajectory.Add(art.User(strconv.Itoa(cell + 1)))
}

// move asks the model for a move, and returns its cell.
func (p *player) move(ctx context.Context, m *art.Model) (cell int, err error) {
	reply, err := m.Chat(ctx, p.trajectory, nil)
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(reply.Content)
	if p.broken = !p.board.play(text); p.broken {
		return 0, nil
	}
	cell, err = strconv.Atoi(text)
	return cell - 1, err
}

// reward returns the trajectory with its reward.
func (p *player) reward() *art.Trajectory {
	switch p.trajectory.Reward = drawn; {
	case p.broken:
		p.trajectory.Reward = illegal
	case p.board.won('B'):
		p.trajectory.Reward = lost
	case p.board.won('A'):
		p.trajectory.Reward = won
	}
	return p.trajectory
}
