package main

import "github.com/goart-dev/art/model"

// flopOfToken returns the FLOP that a token of a job needs at least, 0 for a job that is made of several. With P
// parameters of matrices and S tokens of a sequence:
//
//	forward, prefill  2 P + 2 (S+1) Q L, logits for the last token alone
//	decode            2 P + 4 C Q L, with C tokens of context on average
//	train             4 P + 7 (S+1) Q L
//
// Q is the number of heads times their dimension, and L that of layers. A token attends to (S+1)/2 on average, with 4 Q
// FLOP for each: its score and its value. The gradient with frozen weights takes as many matmuls with weights as the
// forward pass, and 5/2 of its attention (scores again, and four products for the gradients: Dao, FlashAttention-2,
// 2023). Layers that are computed again and the adapter's own matmuls do not count.
func flopOfToken(c *model.Config, r result) float64 {
	_, multiplied := parameters(c)
	p, ofPair := float64(multiplied), float64(c.NumHeads*c.HeadDim*c.NumLayers)
	length := float64(r.Tokens)
	switch r.Job {
	case "forward", "prefill":
		head := float64(c.VocabSize * c.HiddenSize)
		return 2*(p-head) + 2*head/length + 2*(length+1)*ofPair
	case "decode":
		return 2*p + 4*contextOf(r)*ofPair
	case "train":
		return 4*p + 7*(length+1)*ofPair
	}
	return 0
}

// bytesOfToken returns the bytes that a token of decoding must read: its part of the matrices, which all sequences
// share, and the keys and values of its context. It is 0 for other jobs.
func bytesOfToken(c *model.Config, r result) float64 {
	weights, err := typeOf(r.Weights)
	if err != nil || r.Job != "decode" {
		return 0
	}
	cache := weights // of transformers
	if r.Cache != "" {
		if cache, err = typeOf(r.Cache); err != nil {
			return 0
		}
	}
	_, multiplied := parameters(c)
	pair := float64(2 * c.NumKVHeads * c.HeadDim * c.NumLayers * cache.Size())
	return float64(multiplied*weights.Size())/float64(r.Batch) + contextOf(r)*pair
}

// contextOf is the number of tokens that one of decoding attends to, on average.
func contextOf(r result) float64 { return promptOfDecode + float64(r.Tokens+1)/2 }

// peak is what a GPU can do at most.
type peak struct {
	flops float64 // a second, bfloat16 without sparsity
	bytes float64 // a second, of its memory
}

// peaks are those of NVIDIA's data sheets, by the name that nvidia-smi reports.
var peaks = map[string]peak{
	"NVIDIA A100-SXM4-80GB": {312e12, 2.039e12},
	"NVIDIA H100 80GB HBM3": {989e12, 3.35e12},
	"NVIDIA H100 NVL":       {835e12, 3.9e12},
	"NVIDIA H100 PCIe":      {756e12, 2e12},
	"NVIDIA H200":           {989e12, 4.8e12},
}
