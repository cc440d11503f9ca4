package tinker_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/server/child"
	"github.com/goart-dev/art/backend/server/tinker"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/internal/runs"
)

var kills = flag.Int("kills", 0, "how often TestKill kills the server, and how often the client")

// killSteps are the training steps of a run in TestKill.
const killSteps = 6

// What a child process is, and where its files and its server are.
const roleVariable, dirVariable, urlVariable = "TINKER_TEST_ROLE", "TINKER_TEST_DIR", "TINKER_TEST_URL"

// TestMain lets the test binary be a server or a client that is killed.
func TestMain(m *testing.M) {
	var run func(context.Context, string) error
	switch os.Getenv(roleVariable) {
	case "server":
		run = killedServer
	case "client":
		run = killedClient
	default:
		os.Exit(m.Run())
	}
	if err := run(context.Background(), os.Getenv(dirVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killedServer is the server, with its runs in dir.
func killedServer(ctx context.Context, dir string) error {
	ctx = child.Parent(ctx, 5*time.Second)
	b, err := local.Open(ctx, &local.Options{Dir: dir, Context: 64, Slots: 8})
	if err != nil {
		return err
	}
	s, err := tinker.New(b, &tinker.Options{
		Dir: filepath.Join(dir, ".tinker"), Bases: []tinker.Base{{Name: "tiny"}}, Alpha: 8,
		Folder: func(path string) (string, error) {
			ref, err := runs.ParseReference(path, "")
			if err != nil {
				return "", err
			}
			reader, err := runs.NewReader(ref.Dir(dir))
			if err != nil {
				return "", err
			}
			return reader.Find(ref.Step)
		},
	})
	if err != nil {
		return err
	}
	h, err := s.Handler(&art.HandlerOptions{Keys: []string{os.Getenv(child.KeyVariable)}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := child.Ready(os.Stdout, "http://"+l.Addr().String(), nil); err != nil {
		return err
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = web.Close()
	}()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return errors.Join(s.Close(), b.Close())
}

// killedModel registers the model of the client, with its run in dir.
func killedModel(ctx context.Context, dir string) (*client.Backend, *art.Model, error) {
	b, err := client.Open(ctx, &client.Options{
		BaseURL: os.Getenv(urlVariable), Key: "tml-secret", Tokenizer: "../../model/tiny", Dir: dir,
	})
	if err != nil {
		return nil, nil, err
	}
	m := art.NewModel("player", options)
	return b, m, errors.Join(m.Register(ctx, b))
}

// killedClient trains until all steps are made.
func killedClient(ctx context.Context, dir string) error {
	b, m, err := killedModel(ctx, dir)
	if err != nil {
		return err
	}
	for m.Step() < killSteps {
		groups, err := art.GatherGroups(ctx, []string{"yes or no?", "a or b?"},
			func(ctx context.Context, question string) (*art.Trajectory, error) {
				t := art.NewTrajectory(art.User(question))
				reply, err := m.Chat(ctx, t, &art.ChatOptions{MaxTokens: new(6)})
				h := fnv.New32a()
				h.Write([]byte(reply.Content))
				t.Reward = float64(h.Sum32() % 100)
				return t, err
			}, &art.GatherOptions{GroupSize: 4, Concurrency: 8, Seed: uint64(m.Step())})
		if err != nil {
			return err
		}
		result, err := m.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-3, Epochs: 2})
		if err != nil {
			return err
		}
		if err := m.Log(ctx, "train", groups, result.Metrics); err != nil {
			return err
		}
	}
	return b.Close()
}

// disturbed is a run whose server, client and network are disturbed.
type disturbed struct {
	t         *testing.T
	rng       *rand.Rand
	here, dir string // of the client, and of the server
	proxy     string // address of the server, whichever process it is

	mu     sync.Mutex
	server *child.Server
}

// startServer starts the server, and lets the proxy know it.
func (d *disturbed) startServer() {
	d.t.Helper()
	s, err := child.Start(d.t.Context(), &child.Options{
		Command: []string{os.Args[0]}, Key: "tml-secret", Env: []string{roleVariable + "=server", dirVariable + "=" + d.dir},
	})
	require.NoError(d.t, err)
	d.mu.Lock()
	d.server = s
	d.mu.Unlock()
}

// killServer kills it and starts another.
func (d *disturbed) killServer() {
	p, err := os.FindProcess(d.server.PID)
	require.NoError(d.t, err)
	require.NoError(d.t, p.Kill())
	_ = d.server.Close() // says that it was killed
	d.startServer()
}

// startClient starts the client. ended receives what it has written to its standard error, when it ends.
func (d *disturbed) startClient() (cmd *exec.Cmd, ended chan error) {
	d.t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=client", dirVariable+"="+d.here, urlVariable+"="+d.proxy)
	var out strings.Builder
	cmd.Stderr = &out
	require.NoError(d.t, cmd.Start())
	ended = make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out.String())
		}
		ended <- err
	}()
	return cmd, ended
}

// run trains to the end. Server and client are killed as often as is given, at random moments.
func (d *disturbed) run(servers, clients int) {
	d.t.Helper()
	cmd, ended := d.startClient()
	for {
		var disturb <-chan time.Time
		if servers+clients > 0 {
			disturb = time.After(time.Duration(d.rng.Int64N(int64(1500 * time.Millisecond))))
		}
		select {
		case err := <-ended:
			require.NoError(d.t, err)
			if servers+clients == 0 {
				return
			}
			require.NoError(d.t, os.RemoveAll(d.here)) // the run was through: begin another to be disturbed in
			cmd, ended = d.startClient()
		case <-disturb:
			if d.rng.IntN(servers+clients) < servers {
				servers--
				d.killServer()
				continue
			}
			clients--
			require.NoError(d.t, cmd.Process.Kill())
			<-ended
			cmd, ended = d.startClient()
		}
	}
}

// badNetwork hands requests on. With chaos some answers are lost, and some requests arrive twice or late, so that
// others overtake them.
func (d *disturbed) badNetwork(chaos bool) http.Handler {
	var mu sync.Mutex
	chance := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return d.rng.IntN(n)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the client was killed
		}
		lost := false
		if chaos {
			switch chance(12) {
			case 0:
				panic(http.ErrAbortHandler) // before it arrives
			case 1:
				lost = true
			case 2:
				_, _ = d.hand(r, body) // and once more
			case 3:
				time.Sleep(time.Duration(chance(200)) * time.Millisecond)
			}
		}
		answer, err := d.hand(r, body)
		if err != nil || lost {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		for key, values := range answer.Header {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) // the client may be gone
	})
}

// hand sends a request to the server.
func (d *disturbed) hand(r *http.Request, body []byte) (*http.Response, error) {
	d.mu.Lock()
	url := d.server.URL
	d.mu.Unlock()
	request, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = r.Header
	return http.DefaultClient.Do(request)
}

// trained trains, disturbed or not, and returns the files of the adapter and the metrics of each step.
func trained(t *testing.T, seed uint64, chaos bool, servers, clients int) (adapter []byte, rewards []float64) {
	t.Helper()
	d := &disturbed{t: t, rng: rand.New(rand.NewPCG(seed, 0)), here: t.TempDir(), dir: t.TempDir()}
	d.startServer()
	defer func() { require.NoError(t, d.server.Close()) }()
	web := httptest.NewServer(d.badNetwork(chaos))
	defer web.Close()
	d.proxy = web.URL
	d.run(servers, clients)
	t.Setenv(urlVariable, d.server.URL)
	b, m, err := killedModel(t.Context(), d.here)
	require.NoError(t, err)
	require.Equal(t, killSteps, m.Step())
	home := filepath.Join(t.TempDir(), "adapter")
	require.NoError(t, b.Download(t.Context(), m, killSteps, home))
	adapter, err = os.ReadFile(filepath.Join(home, "adapter_model.safetensors"))
	require.NoError(t, err)
	rows, err := b.History(t.Context(), m)
	require.NoError(t, err)
	for step := range killSteps {
		reward, ok := art.Logged(rows, "train/reward", step)
		require.True(t, ok, "step %d is not in the history", step)
		rewards = append(rewards, reward)
	}
	require.NoError(t, b.Close())
	return adapter, rewards
}

// TestKill trains on a network that loses, delays, repeats and reorders requests, and kills the server and the client
// at random moments when -kills says how often. The adapter and the rewards of each step are those of a run that nobody
// disturbed: no step is lost, and none applied twice.
//
//	go test ./backend/tinker -run Kill -kills 50
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	want, rewards := trained(t, seed, false, 0, 0)
	got, gotRewards := trained(t, seed, true, *kills, *kills)
	require.Equal(t, rewards, gotRewards)
	require.True(t, bytes.Equal(want, got), "the adapters differ")
}
