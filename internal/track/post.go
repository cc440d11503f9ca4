package track

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/goart-dev/art/internal/secret"
)

// tries is how often a request is made when the service is busy or has an error.
const tries = 3

var poster = secret.Client(&http.Client{Transport: newTransport()})

// PostJSON sends a value as JSON, as [Post] does.
func PostJSON(ctx context.Context, url string, headers map[string]string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return Post(ctx, url, headers, data)
}

// Post sends JSON. It tries again after a failure that may pass: no answer, status 429, 500 and above.
func Post(ctx context.Context, url string, headers map[string]string, data []byte) error {
	for try := 1; ; try++ {
		again, err := postOnce(ctx, url, headers, data)
		if err == nil || !again || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * 250 * time.Millisecond):
		}
	}
}

func postOnce(ctx context.Context, url string, headers map[string]string, data []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res, err := poster.Do(req)
	if err != nil {
		return !errors.As(err, new(*secret.RedirectError)), fmt.Errorf("POST %s: %w", place(req), secret.WithoutURL(err))
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 512))
	if res.StatusCode/100 == 2 {
		return false, nil
	}
	again = res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500
	return again, fmt.Errorf("POST %s: %s: %s", place(req), res.Status, bytes.TrimSpace(text))
}

// place is where a request goes, without what may be a key.
func place(req *http.Request) string { return req.URL.Scheme + "://" + req.URL.Host + req.URL.Path }
