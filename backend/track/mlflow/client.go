package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/goart-dev/art/internal/secret"
)

// client calls the REST API.
type client struct {
	url       string
	http      *http.Client
	authorize func(*http.Request)
}

// authorization returns how requests say who they are.
func authorization(token string) func(*http.Request) {
	if token == "" {
		token = os.Getenv("MLFLOW_TRACKING_TOKEN")
	}
	user, password := os.Getenv("MLFLOW_TRACKING_USERNAME"), os.Getenv("MLFLOW_TRACKING_PASSWORD")
	return func(r *http.Request) {
		switch {
		case token != "":
			r.Header.Set("Authorization", "Bearer "+token)
		case user != "":
			r.SetBasicAuth(user, password)
		}
	}
}

// apiError is an answer that is not a success.
type apiError struct {
	Status  int    `json:"-"`
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("status %d: %s: %s", e.Status, e.Code, e.Message)
}

// call posts in to an endpoint of the API and reads the answer into out, which may be nil.
func (c *client) call(ctx context.Context, endpoint string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, "/api/2.0/mlflow/"+endpoint, body, out)
}

// get asks an endpoint of the API.
func (c *client) get(ctx context.Context, endpoint string, query url.Values, out any) error {
	return c.do(ctx, http.MethodGet, "/api/2.0/mlflow/"+endpoint+"?"+query.Encode(), nil, out)
}

func (c *client) do(ctx context.Context, method, path string, body []byte, out any) error {
	endpoint, _, _ := strings.Cut(path, "?")
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	c.authorize(req)
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("mlflow: %s: %w", endpoint, secret.WithoutURL(err))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		failure := &apiError{Status: res.StatusCode}
		if json.Unmarshal(answer, failure) != nil {
			failure.Message = string(answer[:min(len(answer), 200)])
		}
		return fmt.Errorf("mlflow: %s: %w", endpoint, failure)
	}
	if out == nil {
		return nil
	}
	return secret.HideError(json.Unmarshal(answer, out), secret.OfHeader(req.Header)) // a number that is none is quoted
}
