package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/goart-dev/art/internal/wire"
)

// keys are the hashes of the API keys. Hashes have equal lengths, so that comparing them takes constant time.
type keys [][sha256.Size]byte

// newKeys parses [art.HandlerOptions].Keys. Its errors do not contain the keys.
func newKeys(p *[]string, list []string) keys {
	var k keys
	for i, key := range list {
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			*p = append(*p, fmt.Sprintf("Keys[%d] is empty, or has white space or other characters that no header can hold", i))
		}
		k = append(k, sha256.Sum256([]byte(key)))
	}
	return k
}

// check refuses requests without a valid key, if there are keys.
func (k keys) check(w http.ResponseWriter, r *http.Request) error {
	if len(k) == 0 || k.has(bearer(r.Header.Get("Authorization")))|k.has(r.Header.Get("X-Api-Key")) == 1 {
		return nil
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	return &wire.Error{
		Status: http.StatusUnauthorized,
		Message: "the API key is missing or wrong; " +
			`send one of the server's keys as "Authorization: Bearer KEY" or "X-Api-Key: KEY"`,
		Type: wire.TypeInvalid,
		Code: "invalid_api_key",
	}
}

// owner identifies the key of an admitted request by its hash. It is zero when the server has no keys.
type owner [sha256.Size]byte

// ownerKey is the context key of an owner.
type ownerKey struct{}

// withOwner returns a request that check has admitted with its owner in its context.
func (k keys) withOwner(r *http.Request) *http.Request {
	if len(k) == 0 {
		return r
	}
	key := bearer(r.Header.Get("Authorization"))
	if k.has(key) == 0 {
		key = r.Header.Get("X-Api-Key")
	}
	return r.WithContext(context.WithValue(r.Context(), ownerKey{}, owner(sha256.Sum256([]byte(key)))))
}

// ownerOf returns the owner that withOwner has set.
func ownerOf(ctx context.Context) owner {
	by, _ := ctx.Value(ownerKey{}).(owner)
	return by
}

// has returns 1 if a key is one of k, else 0, in a time that depends on len(k) only.
func (k keys) has(key string) int {
	hash, found := sha256.Sum256([]byte(key)), 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(hash[:], k[i][:])
	}
	return found
}

// bearer returns the token of an Authorization header, or "" if its scheme is another one.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
