package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	soak        = flag.Duration("soak", 0, "how long TestServe_Soak disturbs a server; 0 skips it, 10m is the full test")
	soakClients = flag.Int("soak.clients", 64, "clients of TestServe_Soak")
)

// soakPrompts is how many different requests there are. Their answers are known: equal seeds have equal replies.
const soakPrompts = 8

// soakServer is a server that clients disturb.
type soakServer struct {
	*testServer
	t       *testing.T
	answers [soakPrompts]string // by seed
	counts  [soakKinds]atomic.Int64
}

// The kinds of requests.
const (
	soakWhole = iota
	soakStream
	soakSeveral
	soakCancel
	soakSlow
	soakHalfClosed
	soakMalformed
	soakCut
	soakKinds
)

var soakNames = [soakKinds]string{"whole", "streams", "of two replies", "cancelled", "read slowly", "half-closed",
	"malformed", "cut"}

// soakBody is the request of a seed, with further fields.
func soakBody(seed int, fields string) string {
	return fmt.Sprintf(`{"model": "tiny", "messages": [{"role": "user", "content": "Count from %d."}], "seed": %d,
		"max_tokens": 24, "return_token_ids": true%s}`, seed, seed+1, fields)
}

// TestServe_Soak disturbs a server with cancelled requests, slow readers, half-closed sockets, malformed and truncated
// bodies:
//
//	go test ./cmd/art -run Serve_Soak -soak 10m -timeout 20m
//
// Every answer that arrives is the one of its seed. Afterwards all slots are free, the server drains requests that are
// under way when it is told to end, and no goroutine is left.
func TestServe_Soak(t *testing.T) {
	if *soak == 0 {
		t.Skip("-soak DURATION runs it")
	}
	first := startServer(t, "tiny") // starts what the device keeps
	first.want(t, "POST", chatPath, chatBody("tiny", ""), 200)
	first.end(t)
	before := goleak.IgnoreCurrent()
	s := &soakServer{testServer: startServer(t, "--key", "secret", "--logprobs", "--drain", "5m", "tiny"), t: t}
	s.client.Timeout = 5 * time.Minute
	for seed := range soakPrompts {
		s.answers[seed] = s.whole(seed, "")
		if s.answers[seed] == "" {
			t.Fatalf("no answer to request %d", seed)
		}
	}
	began := time.Now()
	until, stop := context.WithTimeout(t.Context(), *soak)
	var all sync.WaitGroup
	for i := range *soakClients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(began.UnixNano()), uint64(i)))
			for until.Err() == nil {
				kind := rng.IntN(soakKinds)
				s.disturb(kind, rng.IntN(soakPrompts), rng)
				s.counts[kind].Add(1)
			}
		})
	}
	all.Wait()
	stop()
	for kind, name := range soakNames {
		t.Logf("%d requests %s", s.counts[kind].Load(), name)
	}
	s.allSlotsFree()
	s.drains()
	goleak.VerifyNone(t, before)
}

// disturb makes a request of some kind.
func (s *soakServer) disturb(kind, seed int, rng *rand.Rand) {
	switch kind {
	case soakWhole:
		s.check("whole", seed, s.whole(seed, ""))
	case soakStream:
		s.check("stream", seed, s.stream(s.t.Context(), seed, 0))
	case soakSeveral:
		s.check("of two", seed, s.whole(seed, `, "n": 2`))
	case soakCancel:
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(rng.IntN(300))*time.Millisecond)
		defer cancel()
		if got := s.stream(ctx, seed, 0); got != "" {
			s.check("cancelled", seed, got)
		}
	case soakSlow:
		s.check("slow", seed, s.stream(s.t.Context(), seed, time.Duration(rng.IntN(20))*time.Millisecond))
	case soakHalfClosed:
		s.check("half-closed", seed, s.halfClosed(seed))
	case soakMalformed:
		s.malformed(seed, rng)
	case soakCut:
		s.cut(seed, rng)
	}
}

// check compares an answer with that of its seed.
func (s *soakServer) check(kind string, seed int, got string) {
	if got != s.answers[seed] {
		s.t.Errorf("%s, seed %d: %q, want %q", kind, seed, got, s.answers[seed])
	}
}

// idsOf returns the sampled ids of a response or of chunks, as text.
func idsOf(bodies ...[]byte) (string, error) {
	var ids []int32
	for _, body := range bodies {
		var read struct {
			Choices []struct {
				Index    int
				TokenIDs []int32 `json:"token_ids"`
			}
			Error *struct{ Message string }
		}
		if err := json.Unmarshal(body, &read); err != nil {
			return "", err
		}
		if read.Error != nil {
			return "", errors.New(read.Error.Message)
		}
		for _, c := range read.Choices {
			if c.Index == 0 {
				ids = append(ids, c.TokenIDs...)
			}
		}
	}
	return fmt.Sprint(ids), nil
}

// whole returns the answer to a request that is not streamed.
func (s *soakServer) whole(seed int, fields string) string {
	r := s.request(s.t, "POST", chatPath, strings.NewReader(soakBody(seed, fields)))
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil {
		var ids string
		if ids, err = idsOf(body); err == nil {
			return ids
		}
	}
	s.t.Error(err)
	return ""
}

// stream returns the answer to a streamed request, "" when ctx ends before it is complete. It pauses before it reads an
// event.
func (s *soakServer) stream(ctx context.Context, seed int, pause time.Duration) string {
	r := s.request(s.t, "POST", chatPath, strings.NewReader(soakBody(seed, `, "stream": true`))).WithContext(ctx)
	response, err := s.client.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			s.t.Error(err)
		}
		return ""
	}
	defer response.Body.Close()
	var text []byte
	for chunk := make([]byte, 200); ; {
		time.Sleep(pause)
		n, err := response.Body.Read(chunk)
		if text = append(text, chunk[:n]...); err == nil {
			continue
		}
		if err != io.EOF {
			if ctx.Err() == nil {
				s.t.Error(err)
			}
			return ""
		}
		break
	}
	events, ended := bytes.CutSuffix(text, []byte("data: [DONE]\n\n"))
	if !ended {
		s.t.Errorf("a stream without an end: %s", text)
		return ""
	}
	var bodies [][]byte
	for event := range bytes.SplitSeq(bytes.TrimSuffix(events, []byte("\n\n")), []byte("\n\n")) {
		bodies = append(bodies, bytes.TrimPrefix(event, []byte("data: ")))
	}
	ids, err := idsOf(bodies...)
	if err != nil {
		s.t.Error(err)
	}
	return ids
}

// raw sends a request by a socket.
func (s *soakServer) raw(body string, length int) (*net.TCPConn, error) {
	host := strings.TrimPrefix(s.root, "http://")
	c, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	const head = "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n" +
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s"
	_, err = fmt.Fprintf(c, head, chatPath, host, s.key, length, body)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c.(*net.TCPConn), nil
}

// halfClosed ends its side of the connection once the request is sent, as some proxies do. The server takes the end for
// that of the client, so that there is no answer, or it is complete.
func (s *soakServer) halfClosed(seed int) string {
	body := soakBody(seed, "")
	c, err := s.raw(body, len(body))
	if err != nil {
		s.t.Error(err)
		return ""
	}
	defer c.Close()
	if err := c.CloseWrite(); err != nil {
		return s.answers[seed] // the server has gone already
	}
	text, _ := io.ReadAll(c)
	_, answer, found := bytes.Cut(text, []byte("\r\n\r\n"))
	if !found || !bytes.HasPrefix(text, []byte("HTTP/1.1 200")) {
		return s.answers[seed]
	}
	ids, err := idsOf(answer)
	if err != nil {
		s.t.Errorf("half-closed: %v: %s", err, text)
	}
	return ids
}

// malformed sends a body that is damaged. The status is 400, or 200 if it means something still.
func (s *soakServer) malformed(seed int, rng *rand.Rand) {
	body := []byte(soakBody(seed, ""))
	for range 1 + rng.IntN(8) {
		body[rng.IntN(len(body))] = byte(rng.IntN(256))
	}
	response, err := s.client.Do(s.request(s.t, "POST", chatPath, bytes.NewReader(body)))
	if err != nil {
		s.t.Error(err)
		return
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 500 {
		s.t.Errorf("status %d, %v: %s for %q", response.StatusCode, err, text, body)
	}
}

// cut promises more than it sends, and closes the connection.
func (s *soakServer) cut(seed int, rng *rand.Rand) {
	body := soakBody(seed, `, "stream": true`)
	promised := len(body)
	if rng.IntN(2) == 0 {
		promised += 100
	}
	c, err := s.raw(body, promised)
	if err != nil {
		s.t.Error(err)
		return
	}
	if promised == len(body) { // an answer that is not read to its end
		_, _ = c.Read(make([]byte, 1+rng.IntN(500)))
	}
	_ = c.Close()
}

// allSlotsFree begins as many requests as there are slots, none of which is read to its end before all have begun.
func (s *soakServer) allSlotsFree() {
	const slots = 4 // of startServer
	var begun sync.WaitGroup
	begun.Add(slots)
	var all sync.WaitGroup
	for seed := range slots {
		all.Go(func() {
			body := strings.Replace(soakBody(seed, `, "stream": true, "min_tokens": 200`), "24", "200", 1)
			response, err := s.client.Do(s.request(s.t, "POST", chatPath, strings.NewReader(body)))
			if err != nil {
				s.t.Error(err)
				begun.Done()
				return
			}
			defer response.Body.Close()
			if _, err := io.ReadFull(response.Body, make([]byte, 20)); err != nil {
				s.t.Error(err)
			}
			begun.Done()
			begun.Wait()
			text, err := io.ReadAll(response.Body)
			if err != nil || !bytes.HasSuffix(text, []byte("[DONE]\n\n")) {
				s.t.Errorf("%v: %s", err, text)
			}
		})
	}
	all.Wait()
}

// drains tells the server to end while requests are under way: they are answered, others are refused, and it succeeds.
func (s *soakServer) drains() {
	var all sync.WaitGroup
	for seed := range 3 {
		end, answer := s.slow(s.t, soakBody(seed, ""))
		all.Go(func() {
			time.Sleep(100 * time.Millisecond) // the server drains meanwhile
			if err := end(); err != nil {
				s.t.Error(err)
			}
			if text := <-answer; !strings.Contains(text, `"token_ids"`) {
				s.t.Errorf("a request that was under way: %s", text)
			}
		})
	}
	s.stop()
	all.Wait()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
	s.client.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
}
