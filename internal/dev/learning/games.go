package learning

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// Rewards of a game. A draw is worth nearly a win.
const won, drawn, lost, illegal = 1.0, 0.8, 0.0, -0.5

// gameConfig is the configuration of both games.
func gameConfig(rate float64) *art.TrainConfig {
	return &art.TrainConfig{
		Loss: credit.PPO, LearningRate: rate, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0),
	}
}

// explore plays the greedy policy through all lines, as first and as second player.
func explore(ctx context.Context, m *art.Model) (*[2]*Lines, error) {
	player := func(ctx context.Context, t *art.Trajectory) (string, error) {
		reply, err := m.Chat(ctx, t, greedy())
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(reply.Content), nil
	}
	var sides [2]*Lines
	for i := range sides {
		var err error
		if sides[i], err = Explore(ctx, player, i == 0); err != nil {
			return nil, err
		}
	}
	return &sides, nil
}

// measureLines returns how the greedy policy fares in all lines.
func measureLines(ctx context.Context, m *art.Model) (map[string]float64, error) {
	sides, err := explore(ctx, m)
	if err != nil {
		return nil, err
	}
	metrics := map[string]float64{}
	for i, name := range []string{"first", "second"} {
		l := sides[i]
		metrics["lines_"+name], metrics["lost_"+name] = float64(l.All), float64(l.Lost+l.Illegal)
		metrics["score"] += 50 * l.Score
	}
	return metrics, nil
}

// TicTacToe is trained against a program that wins where it can, and moves by chance otherwise: from the empty board,
// and from positions of games that the greedy policy loses.
func TicTacToe() *Task {
	return &Task{
		Name: "tic-tac-toe", What: "play tic-tac-toe against an opponent that wins where it can", Steps: 200, Every: 20,
		Aim: AtMost(0), Measure: "lines of play that the greedy policy loses, of all, as first and second player",
		Low: true, Context: 96, MaxTokens: 4, Rank: 32, Start: func() Agent { return ticTacToe{} },
	}
}

type ticTacToe struct{}

// lostPositions is the number of positions of a step, out of games that the greedy policy loses.
const lostPositions = 12

// Groups implements Agent. Games from the empty board alone leave a fifth of all lines lost after 200 steps: they
// seldom come to a position that the policy plays wrongly, and its opponent seldom punishes that.
func (ticTacToe) Groups(ctx context.Context, m *art.Model, step int) ([]*art.TrajectoryGroup, error) {
	sides, err := explore(ctx, m)
	if err != nil {
		return nil, err
	}
	games := []*player{start(true), start(false)}
	random := rand.New(rand.NewPCG(1, uint64(step)))
	if defeats := slices.Concat(sides[0].Defeats, sides[1].Defeats); len(defeats) > 0 {
		for range lostPositions {
			games = append(games, position(defeats[random.IntN(len(defeats))], random))
		}
	}
	return gather(ctx, games, 8, step, against(m))
}

// Config implements Agent. Without a bonus for entropy the policy becomes sure of some losing moves, so that all games
// from such a position are lost and nothing is learned of them. The learning rate falls to almost nothing, or else each
// step, while it corrects some lines, loses others.
func (ticTacToe) Config(step int) *art.TrainConfig {
	cfg := gameConfig(6e-4 * max(0.02, 1-float64(step)/200))
	cfg.Epochs, cfg.EntropyBonus = 3, 0.03
	return cfg
}

// Measure implements Agent.
func (ticTacToe) Measure(ctx context.Context, m *art.Model) (map[string]float64, error) {
	metrics, err := measureLines(ctx, m)
	if err == nil {
		metrics["value"] = metrics["lost_first"] + metrics["lost_second"]
	}
	return metrics, err
}

// start is the beginning of a game, where the agent or its opponent is to move.
func start(first bool) *player { return &player{trajectory: begin(first), moves: first} }

// position is a game up to one of the agent's moves in it, chosen at random: that one is to be made again, and the
// opponent repeats its moves for as long as the agent does.
func position(game *art.Trajectory, random *rand.Rand) *player {
	var moves []int
	for i, m := range game.Messages {
		if m.Role == art.RoleAssistant {
			moves = append(moves, i)
		}
	}
	p := &player{trajectory: art.NewTrajectory(), moves: true, game: game.Messages}
	for _, m := range game.Messages[:moves[random.IntN(len(moves))]] {
		p.trajectory.Add(art.Message{Role: m.Role, Content: m.Content}) // no sample: it is not trained on
		if cell, err := strconv.Atoi(m.Content); err == nil && m.Role == art.RoleAssistant {
			p.board[cell-1] = 'A'
		} else if err == nil {
			p.board[cell-1] = 'B'
		}
	}
	return p
}

// against returns a rollout that plays a game from a position to its end, against the program.
func against(m *art.Model) func(context.Context, *player) (*art.Trajectory, error) {
	return func(ctx context.Context, from *player) (*art.Trajectory, error) {
		random := art.Rand(ctx)
		p := &player{trajectory: from.trajectory.Clone(), board: from.board, moves: from.moves, game: from.game}
		for !p.board.over() {
			if !p.moves {
				cell, ok := p.repeated()
				if !ok {
					cell = sharp(&p.board, random)
				}
				p.sees(cell)
				continue
			}
			if _, err := p.move(ctx, m); err != nil || p.broken {
				return p.reward(), err
			}
		}
		return p.reward(), nil
	}
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
	moves      bool          // is to move
	game       []art.Message // an earlier one that this one repeats as far as it is the same; nil for none
	broken     bool          // off by an illegal move
}

// repeated is the move of the other side in the earlier game, if all moves up to it were the same.
func (p *player) repeated() (cell int, ok bool) {
	n := len(p.trajectory.Messages)
	if n >= len(p.game) {
		return 0, false
	}
	for i, m := range p.trajectory.Messages {
		if m.Content != p.game[i].Content {
			return 0, false
		}
	}
	cell, err := strconv.Atoi(p.game[n].Content)
	return cell - 1, err == nil
}

// sees takes a move of the other side.
func (p *player) sees(cell int) {
	p.board[cell], p.moves = 'B', true
	p.trajectory.Add(art.User(strconv.Itoa(cell + 1)))
}

// move asks the model for a move, and returns its cell.
func (p *player) move(ctx context.Context, m *art.Model) (cell int, err error) {
	reply, err := m.Chat(ctx, p.trajectory, nil)
	if err != nil {
		return 0, err
	}
	p.moves = false
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
