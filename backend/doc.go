// Package backend holds no code. Each backend of art is a package below it; choose by where the model shall run:
//
//   - backend/local: in this process, on this machine. The default.
//   - backend/openai, backend/anthropic, backend/gemini: behind an API, for judges and baselines. They answer and log,
//     and do not train. The latter two are modules of their own.
//
// backend/hosted is what these have in common: options, prices, limits, errors.
//
// backend/server serves the models of any backend over HTTP, with OpenAI's API.
//
// backend/backendtest is the suite that any implementation of art.Backend should pass: run it on yours.
package backend
