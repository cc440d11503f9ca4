package art

import "time"

// HandlerOptions say whom the handler of an [HTTPServer] answers, and how much it takes. The zero value and a nil
// *HandlerOptions are the defaults: programs that reach it by a name of this machine, and no pages of other web sites.
//
// Without Keys everybody who can connect is answered: listen on a loopback address, or set Keys. A handler
// knows nothing of TLS: put it behind a server that does when it is reached over a network.
type HandlerOptions struct {
	// Hosts are the names under which the server is reached, as in the Host header: "gpu-box", "10.0.0.7", or with a port,
	// "gpu-box:8080", which allows that port only. Always allowed are localhost and names that end in .localhost, loopback
	// addresses, and the address at which the connection arrived. Other hosts are refused (status 403): a web site can
	// let its own name point to this machine, and be taken for the same origin by a browser. "*" allows all and needs
	// Keys.
	Hosts []string
	// Origins are the web sites whose pages may use the server from a browser: "https://app.example.com". They get the
	// headers of CORS. Pages that come from the server's own host and port are always allowed, all others are refused
	// (status 403). "*" allows all and needs Keys.
	Origins []string
	// Keys are the secrets that a client sends one of, as "Authorization: Bearer KEY" or "X-Api-Key: KEY". Others are
	// refused (status 401). Default: none is asked for.
	Keys []string
	// MaxBody bounds the body of a request in bytes. Default 32 MiB.
	MaxBody int64
	// MaxBodies bounds the bodies of all requests that are being read or answered, in bytes that have arrived; the first
	// 64 KiB of each are not counted. A request beyond it is refused (status 503, with Retry-After). Default 256 MiB, or
	// MaxBody when that is more.
	MaxBodies int64
	// BodyTimeout is how long a body may take to arrive (status 408). A server with a ReadTimeout of its own has that
	// instead. It needs a ResponseWriter that [net/http.ResponseController] knows: middleware that wraps one must have the
	// method Unwrap. Default 1 minute.
	BodyTimeout time.Duration
}
