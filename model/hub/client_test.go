package hub

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFollowAll: a redirect keeps the token from other servers, and is refused where anybody could read or change it.
func TestFollowAll(t *testing.T) {
	for _, c := range []struct {
		from, to string
		token    bool
		err      string
	}{
		{"https://hub/a", "https://hub/b", true, ""},
		{"https://hub/a", "https://cdn.hub/b", false, ""},
		{"https://hub/a", "https://hub:8443/b", false, ""},
		{"http://hub/a", "https://hub/b", true, ""},
		{"https://hub/a", "http://hub/b", true, "redirects from https to http"},
		{"https://hub/a", "file:///etc/passwd", true, "from https to file"},
	} {
		from, err := url.Parse(c.from)
		require.NoError(t, err)
		to, err := url.Parse(c.to)
		require.NoError(t, err)
		req := &http.Request{URL: to, Header: http.Header{"Authorization": {"Bearer x"}}}
		err = followAll(req, []*http.Request{{URL: from}})
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.token, req.Header.Get("Authorization") != "", "%s to %s", c.from, c.to)
	}
}
