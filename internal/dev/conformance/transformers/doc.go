// Package transformers compares the models that this library builds with transformers and PEFT, on configurations drawn
// at random and with each of their keys changed. What is needed is in requirements.txt:
//
//	python3 -m venv VENV && VENV/bin/pip install -r internal/dev/conformance/transformers/requirements.txt
//	ART_PYTHON=$PWD/VENV/bin/python go test ./internal/dev/conformance/transformers -v -timeout 60m
//
// families.py has a row for each family. What transformers computes is recorded by record.py, mutate.py and exact.py,
// and what this library writes is read by read.py. Flags choose the families, the number of configurations and the
// seed, and where recordings are kept; -table writes the table of docs/models.md. With ART_TEST_DEVICE=xla:cpu graphs
// run on XLA.
package transformers
