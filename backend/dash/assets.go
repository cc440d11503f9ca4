package dash

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// assetHashes are the names of files, and what they are served as: with a hash of their content, so that browsers may
// keep them forever.
var assetHashes = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, name := range []string{"app.js", "app.css", "icon.svg"} {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		sum := sha256.Sum256(content)
		ext := path.Ext(name)
		names[name] = strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
	}
	return names
})

// assetName is the name that a file is served as.
func assetName(name string) string { return assetHashes()[name] }

// serveAsset serves the script, the style sheet and the icon. They hold nothing secret: the page that asks for a key
// has them too.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	for file, hashed := range assetHashes() {
		if name != hashed {
			continue
		}
		content, err := assets.ReadFile("assets/" + file)
		if err != nil {
			break
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(file)))
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		sendBytes(w, r, http.StatusOK, content)
		return
	}
	http.NotFound(w, r)
}
