// Package backend holds no code. Each backend of art is a package below it; choose by where the model shall run:
//
//   - backend/local: in this process, on this machine. The default.
//   - backend/tinker, backend/wandb: on a service that trains, or on another machine with art serve --train.
//   - backend/openai, backend/anthropic, backend/gemini: behind an API, for judges and baselines. They answer and log,
//     and do not train. The latter two are modules of their own. backend/hosted is what these have in common: options,
//     prices, limits, errors.
//
// Around them are
//
//   - backend/server, which serves the models of any backend over HTTP, with OpenAI's API;
//   - backend/rundir, which reads what is stored of a run, backend/dash, a page that shows it, and backend/plot, which
//     draws curves;
//   - backend/track, whose packages log to TensorBoard, W&B, MLflow, Prometheus, OpenTelemetry and the terminal;
//   - backend/publish, which copies checkpoints to other places;
//   - backend/device, whose packages compute: on the CPU, or with XLA on GPUs too;
//   - backend/backendtest, the suite that any implementation of art.Backend should pass: run it on yours.
package backend
