package server

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art"
)

// TestShares: whatever the others do, a client has its own part, and all together never hold more than the limit.
func TestShares(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		clients, limit := 1+random.IntN(5), 1+random.Int64N(100)
		s, held, sum := newShares(limit, clients), make([]int64, clients), int64(0)
		for range 200 {
			who, n := random.IntN(clients), random.Int64N(10)
			name := fmt.Sprint(who)
			if held[who] >= n && random.IntN(2) == 0 {
				s.release(name, n)
				held[who], sum = held[who]-n, sum-n
				continue
			}
			took := s.take(name, n)
			if took {
				held[who], sum = held[who]+n, sum+n
			}
			if own := limit / 2 / int64(clients); !took && held[who]+n <= own || sum > limit {
				t.Fatalf("client %d has %d of its own %d and could not take %d; all have %d of %d", who, held[who], own, n, sum,
					limit)
			}
		}
		for who, n := range held {
			s.release(fmt.Sprint(who), n)
		}
		if len(s.held) != 0 || s.common != 0 || !s.take("0", limit-limit/2+limit/2/int64(clients)-int64(clients)) {
			t.Fatalf("not all was given back: %v, %d", s.held, s.common)
		}
	}
}

// held serves requests that wait until the test ends, as those of two clients by their keys.
func held(t *testing.T, opts *art.HandlerOptions, serve http.HandlerFunc) http.Handler {
	t.Helper()
	opts.Keys = []string{"ann", "bob"}
	h, err := Guard(serve, opts, &GuardConfig{
		Client: func(r *http.Request) string { return r.Header.Get("X-Api-Key") }, Clients: 2,
		Keyless: func(r *http.Request) bool { return r.URL.Path == "/download" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestGuard_RequestsOfOneClient: one client, however many requests it has, keeps out no other. Requests without a key
// hold nothing, and those that wait are not counted.
func TestGuard_RequestsOfOneClient(t *testing.T) {
	end, began := make(chan struct{}), make(chan struct{})
	h := held(t, &art.HandlerOptions{MaxRequests: 12}, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			Waits(r.Context())
		}
		if r.URL.Path != "/quick" {
			began <- struct{}{}
			<-end
		}
	})
	var all sync.WaitGroup
	refused := 0
	hold := func(path, key string, n int) {
		t.Helper()
		for range n {
			answered := make(chan int, 1)
			all.Go(func() { answered <- ask(h, "GET", "http://localhost"+path, "", "X-Api-Key: "+key).Code })
			select {
			case <-began:
			case status := <-answered:
				refused++
				if status != http.StatusServiceUnavailable && key != "eve" {
					t.Errorf("%s of %q: status %d", path, key, status)
				}
			}
		}
	}
	hold("/wait", "ann", 100)
	if refused != 0 {
		t.Errorf("%d of 100 that wait were refused", refused)
	}
	hold("/slow", "ann", 100)
	if refused != 100-8 { // its own part, 2, and the common half, 6
		t.Errorf("%d of 100 were refused, want 92", refused)
	}
	hold("/slow", "eve", 50) // nobody's key
	hold("/download", "", 2)
	refused = 0
	if hold("/download", "", 1); refused != 1 {
		t.Error("downloads are more than their part")
	}
	for range 3 {
		wantCode(t, "another client", ask(h, "GET", "http://localhost/quick", "", "X-Api-Key: bob"), 200, "")
	}
	close(end)
	all.Wait()
	if g := h.(*guard); len(g.running.held) != 0 || g.running.common != 0 {
		t.Errorf("not all was given back: %v, %d", g.running.held, g.running.common)
	}
}

// TestGuard_BodiesOfOneClient: bodies that one client sends slowly keep out no body of another.
func TestGuard_BodiesOfOneClient(t *testing.T) {
	const size = 1 << 20
	h := held(t, &art.HandlerOptions{MaxBody: size, MaxBodies: 12 * size}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(Status(err))
		}
	})
	read, end := make(chan bool), make(chan struct{})
	refused := make(chan int)
	const clients = 40
	for range clients {
		go func() {
			r := httptest.NewRequest("POST", "http://localhost/", &unfinished{size - 1, read, end})
			r.Header.Set("X-Api-Key", "ann")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			refused <- w.Code
		}()
	}
	kept := 0
	for range clients {
		select {
		case <-read:
			kept++
		case <-refused:
		}
	}
	if kept == 0 || kept > 9 {
		t.Errorf("%d bodies of one client are held", kept)
	}
	body := strings.Repeat(" ", size)
	if w := ask(h, "POST", "http://localhost/", body, "X-Api-Key: bob"); w.Code != http.StatusOK {
		t.Errorf("another client: status %d: %s", w.Code, w.Body)
	}
	close(end)
	for range kept {
		<-refused
	}
}
