// Package backend holds no code. Each backend of art is a package below it; choose by where the model shall run:
//
//   - backend/local: in this process, on this machine. The default.
//
// backend/server serves the models of any backend over HTTP, with OpenAI's API.
//
// backend/backendtest is the suite that any implementation of art.Backend should pass: run it on yours.
package backend
