// Package lora adds small trainable matrices to the frozen linear layers of a model.
//
// A layer with weight W [Out, In] computes, instead of x·Wᵀ,
//
//	y = x·Wᵀ + Scale·(x·Aᵀ)·Bᵀ      A [Rank, In], B [Out, Rank], Scale = Alpha/Rank
//
// and only A and B are trained; [Config.Scale] has the scale of each layer. B is initialised to zero, so a new adapter
// leaves the output of the model unchanged.
//
// With DoRA (Liu et al. 2024, https://arxiv.org/abs/2402.09353) the weight is W' below, in place of V = W + Scale·B·A,
// and its magnitudes m (Out), which begin as the norms of the rows of W, are trained too:
//
//	W'[o] = m[o]·V[o] / ‖V[o]‖
//
// The package knows nothing of models: it is given the names and sizes of layers ([New]), provides hooks that are
// called for each of them while a graph is built ([Adapter.Hooks]), reads and writes the files of Hugging Face's PEFT
// ([Load], [Adapter.Save]), and merges adapters into weights ([Adapter.Merge]).
//
// There are two layouts. In memory and on disk A and B are PEFT's, as above. In graphs they are transposed, A [In,
// Rank] and B [Rank, Out], so that neither matmul needs a transpose; [Adapter.Params] and [Adapter.SetParams] convert.
//
// Source: Hu et al. 2021, https://arxiv.org/abs/2106.09685.
package lora
